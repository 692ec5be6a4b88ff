// Submits each step of a long form. Without a script, each step takes a click.
const form = document.querySelector("#steps");
if (form) form.submit();
