// Scalar does some things in ways that the policy of this page forbids. This script does them in ways that the policy
// allows, so that the policy needs no exception.

// Style sheets that scripts make bear the nonce of this page.
const { nonce } = document.querySelector("meta[property=csp-nonce]");
const { createElement } = document;
document.createElement = function (...args) {
  const element = createElement.apply(this, args);
  if (element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
};

// Attributes of style become styles.
const { setAttribute } = Element.prototype;
Element.prototype.setAttribute = function (name, value) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
const innerHTML = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
Object.defineProperty(Element.prototype, "innerHTML", {
  ...innerHTML,
  set(html) {
    innerHTML.set.call(this, String(html).replace(/(<[a-z][^<>]*?\s)style=/gi, "$1data-style="));
    for (const element of this.querySelectorAll("[data-style]")) {
      element.style.cssText = element.dataset.style;
      element.removeAttribute("data-style");
    }
  },
});

// Scalar tries whether a text can be run as a program. It cannot.
const refuse = () => {
  throw new EvalError("no text is run as a program here");
};
globalThis.Function = new Proxy(Function, { apply: refuse, construct: refuse });
