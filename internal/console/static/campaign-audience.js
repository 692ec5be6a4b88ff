// Shows the columns of a list when it is chosen, and sends only the beginning of the file for that. The file is kept for the form that
// uploads the list, so that the user chooses it once.
const look = document.querySelector("form.look");
const chosen = look?.querySelector('input[type="file"]');
const sample = 64 * 1024;

async function showColumns() {
  const [file] = chosen.files;
  if (!file) return;
  const body = new FormData();
  body.append("file", file.slice(0, sample), file.name);
  const answer = await fetch(look.action, { method: "POST", body, headers: { "HX-Request": "true" } });
  const elsewhere = answer.headers.get("HX-Redirect");
  if (elsewhere) return location.assign(elsewhere);
  if (!answer.ok) return look.submit();
  const place = document.getElementById(look.dataset.columns);
  place.innerHTML = await answer.text();
  const again = place.querySelector('input[type="file"]');
  if (!again) return;
  again.files = chosen.files;
  place.querySelector("select")?.focus();
}

if (look) {
  chosen.addEventListener("change", showColumns);
  look.addEventListener("submit", (event) => {
    if (chosen.files.length === 0) return;
    event.preventDefault();
    showColumns();
  });
}
