// Tells the server the zone of this browser, so that "mine" means it; the server draws all times.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = document.cookie.split("; ").includes(`sendquota_tz=${zone}`);
if (zone && !known) {
  document.cookie = `sendquota_tz=${zone}; path=/console; max-age=31536000; samesite=strict`;
  if (document.cookie.includes("sendquota_tz=") && document.querySelector("time")) location.reload();
}

// On a narrow screen the menu begins closed.
const menu = document.querySelector("details.menu");
if (menu && matchMedia("(max-width: 60rem)").matches) menu.open = false;

// A button that copies stands before each call and each secret. Where the browser does not let pages copy, the text is selected.
for (const pre of document.querySelectorAll(".calls pre, pre.secret")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected: copy it with the keyboard";
    }
  });
  pre.before(button);
}
