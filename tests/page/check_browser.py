"""Opens the page in headless Chromium: no console message, nothing wider than the window.

usage: check_browser.py CHROMIUM PAGE FOLDER
Two widths, light and dark; a screenshot of each stays in FOLDER.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

chromium, page, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
# Measures from inside; the page's own policy forbids scripts, so the copy goes without it.
PROBE = """<script>addEventListener('load', () => {
  for (const d of document.querySelectorAll('details')) d.open = true;
  const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') && !e.closest('pre')
    && !e.closest('svg') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName);
  const cut = [...document.querySelectorAll('svg text')].filter(t => {
    const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();
    return a.left < b.left - 2 || a.right > b.right + 2; }).map(t => t.textContent);
  document.title = JSON.stringify({width: innerWidth, scroll: document.documentElement.scrollWidth,
    wide, cut, background: getComputedStyle(document.body).backgroundColor,
    figures: document.querySelectorAll('svg[role=img]').length,
    unnamed: [...document.querySelectorAll('svg')].filter(s => !s.getAttribute('aria-labelledby')
      .split(' ').every(id => document.getElementById(id)?.textContent)).length});
})</script>"""


def run(arguments, where):
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--enable-logging=stderr", f"--user-data-dir={where}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


failures = []
with tempfile.TemporaryDirectory() as scratch:
    text = page.read_text(encoding="utf-8")
    copy = pathlib.Path(scratch) / "copy.html"
    probed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    copy.write_text(probed.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    for width in (500, 1280):
        for scheme, setting in (("light", 1), ("dark", 0)):
            what = f"{scheme}, {width} pixels"
            view = [f"--window-size={width},2000", f"--blink-settings=preferredColorScheme={setting}"]
            shot = run([*view, f"--screenshot={folder}/page-{scheme}-{width}.png", page.as_uri()], scratch)
            console = [line for line in shot.stderr.splitlines() if "CONSOLE" in line]
            if console:
                failures.append(f"{what}: {console}")
            dom = run([*view, "--dump-dom", copy.as_uri()], scratch).stdout
            found = json.loads(re.search(r"<title>(\{.*?\})</title>", dom, re.S)[1].replace("&amp;", "&"))
            dark = found["background"] != "rgb(255, 255, 255)"
            if found["scroll"] > found["width"] or found["wide"]:
                failures.append(f"{what}: wider than the window: {found}")
            if found["cut"]:
                failures.append(f"{what}: text outside its plot: {found['cut']}")
            if dark != (scheme == "dark"):
                failures.append(f"{what}: background {found['background']}")
            if found["figures"] < 5 or found["unnamed"]:
                failures.append(f"{what}: {found}")
print("\n".join(failures) or "the page fits both widths in both schemes, with a silent console")
sys.exit(1 if failures else 0)
