package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a browser that looks at a site.
type tab struct {
	*site
	ctx context.Context

	mu       sync.Mutex
	troubles []string // errors in its console, and what it could not load
}

func openTab(s *site) *tab {
	s.Helper()
	path, err := findBrowser()
	if err != nil && os.Getenv("KEYFUSE_REQUIRE_BROWSER") != "1" {
		s.Skip(err)
	}
	if err != nil {
		s.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		// Nothing beyond this machine is asked for.
		chromedp.Flag("proxy-server", "direct://"), chromedp.Flag("disable-component-update", true), chromedp.Flag("no-pings", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	s.Cleanup(stop)
	t := &tab{site: s}
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithListener(t.note))
	s.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // without a limit: it would be the browser's
		s.Fatal(err)
	}
	t.ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	s.Cleanup(cancel)
	return t
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no chromium: apt-get install chromium")
}

func (t *tab) note(event any) {
	trouble := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		trouble = e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			trouble = e.Entry.Text + " " + e.Entry.URL
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			trouble = fmt.Sprint("console: ", e.Args)
		}
	}
	if trouble != "" {
		t.mu.Lock()
		t.troubles = append(t.troubles, trouble)
		t.mu.Unlock()
	}
}

// quiet fails if the console has said anything.
func (t *tab) quiet(where string) {
	t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, trouble := range t.troubles {
		t.Errorf("%s: %s", where, trouble)
	}
	t.troubles = nil
}

func (t *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(t.ctx, steps...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("did: %s", what)
}

// get is what an action gives.
func get[T any](t *tab, what string, action chromedp.Action[T]) T {
	t.Helper()
	value, err := chromedp.Run(t.ctx, action)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return value
}

// ask is what a script says.
func ask[T any](t *tab, script string) T {
	t.Helper()
	return get(t, script, chromedp.Evaluate[T](script))
}

func (t *tab) open(path string) {
	t.Helper()
	t.do("open "+path, chromedp.Navigate(t.url+path), chromedp.WaitVisible("main"))
}

// until waits until a script says true.
func (t *tab) until(what, script string) {
	t.Helper()
	get(t, "wait until "+what, chromedp.Poll[bool](script, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second)))
	t.Logf("saw: %s", what)
}

// click clicks and waits for the page that comes.
func (t *tab) click(what, xpath string) {
	t.Helper()
	loaded := func(page.EventLoadEventFired) bool { return true }
	get(t, what, chromedp.WaitEvent(page.LoadEventFired, loaded, chromedp.Click(xpath)))
	t.Logf("did: %s", what)
}

func (t *tab) text() string {
	t.Helper()
	return ask[string](t, `document.body.innerText`)
}

// shoot takes pictures: on a desk and on a phone, light and dark.
func (t *tab) shoot(name string) {
	t.Helper()
	for _, view := range []struct {
		name, scheme  string
		width, height int64
	}{{"light", "light", 1280, 900}, {"dark", "dark", 1280, 900}, {"phone", "light", 390, 844}} {
		t.scheme(view.scheme)
		t.do("look as on a "+view.name, chromedp.EmulateViewport(view.width, view.height))
		png := get(t, "take a picture", chromedp.FullScreenshot(100))
		if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+"-"+view.name+".png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.do("look as before", chromedp.ResetViewport())
	t.scheme("")
}

// scheme makes the browser prefer light or dark; empty is as it was.
func (t *tab) scheme(name string) {
	t.Helper()
	params := emulation.SetEmulatedMediaParams{}
	if name != "" {
		params.Features = []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	}
	if _, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, params); err != nil {
		t.Fatal(err)
	}
}

const hostile = `<script>document.title='owned'</script>`

func TestTheDashboardWithoutAToken(t *testing.T) {
	s := startSite(t, "")
	b := openTab(s)
	s.call("POST", "/v1/jobs", `{"id":"order:1","task":"note","in":"1h","payload":"{\"order\":1,\"customer\":\"Ada\"}"}`)
	s.call("POST", "/v1/jobs", `{"id":"broken:1","task":"broken","in":"0s","payload":"what it got"}`)
	s.call("POST", "/v1/jobs", `{"id":"slow:1","task":"slow","in":"0s"}`)
	s.call("POST", "/v1/jobs", `{"id":"`+hostile+`","task":"note","in":"2h"}`)
	s.call("POST", "/v1/thresholds", `{"id":"signups","task":"note","count":100,"within":"10m"}`)
	for range 3 {
		s.call("POST", "/v1/thresholds/signups/hits", `{"by":12}`)
	}
	for i := range 30 {
		s.call("POST", "/v1/jobs", fmt.Sprintf(`{"id":"note:%d","task":"note","in":"0s"}`, i))
	}

	b.open("/")
	b.until("the dead letter is counted", `[...document.querySelectorAll(".tile")].some(t => t.innerText.match(/1\s+dead/))`)
	b.quiet("overview")
	b.contrast("overview")
	b.shoot("overview")

	b.open("/jobs")
	b.until("it counts down", `document.querySelector("time[data-relative]").textContent.startsWith("in ")`)
	ask[string](b, `window.before = document.querySelector("time[data-relative]").textContent`)
	b.until("the time has changed", `document.querySelector("time[data-relative]").textContent !== window.before`)
	s.call("POST", "/v1/jobs", `{"id":"order:2","task":"note","in":"30m"}`)
	b.until("a job that was scheduled meanwhile is there", `document.body.innerText.includes("order:2")`)
	if title := b.text(); !strings.Contains(title, hostile) {
		t.Error("the script of an id is not shown as text")
	}
	if title := get(b, "read the title", chromedp.Title()); !strings.HasPrefix(title, "Jobs") {
		t.Errorf("the title is %q", title)
	}
	b.quiet("jobs")
	b.contrast("jobs")
	b.shoot("jobs")
	b.click("cancel order:2", `//tr[.//a[text()="order:2"]]//button[text()="Cancel"]`)
	if text := b.text(); strings.Contains(text, "order:2") || !strings.Contains(text, "Cancelled.") {
		t.Error("order:2 is still there")
	}

	b.click("open order:1", `//a[text()="order:1"]`)
	if text := b.text(); !strings.Contains(text, `"customer": "Ada"`) {
		t.Error("the payload is not pretty")
	}
	b.quiet("job")
	b.contrast("job")
	b.shoot("job")
	b.do("type a delay", chromedp.SendKeys(`input[name="in"]`, "3h"))
	b.click("reschedule it", `//button[text()="Reschedule"]`)
	if text := b.text(); !strings.Contains(text, "in 2h59m") && !strings.Contains(text, "in 3h") {
		t.Errorf("it is not rescheduled: %s", text)
	}

	b.open("/jobs/" + `%3Cscript%3Edocument.title='owned'%3C%2Fscript%3E`)
	b.quiet("hostile job")

	b.open("/thresholds")
	if text := b.text(); !strings.Contains(text, "36 of 100") {
		t.Error("the count is not shown")
	}
	b.quiet("thresholds")
	b.contrast("thresholds")
	b.shoot("thresholds")

	b.open("/dead")
	b.quiet("dead letters")
	b.contrast("dead letters")
	b.shoot("dead")
	b.click("requeue broken:1", `//tr[.//a[text()="broken:1"]]//button[text()="Requeue"]`)
	if text := b.text(); !strings.Contains(text, "Requeued") {
		t.Error("requeueing is not said")
	}
	b.until("it has failed again", `document.body.innerText.includes("broken:1")`)
	b.click("delete it", `//tr[.//a[text()="broken:1"]]//button[text()="Delete"]`)
	b.shoot("confirm")
	b.click("be sure", `//button[text()="Delete"]`)
	if text := b.text(); strings.Contains(text, "broken:1") {
		t.Error("it is not deleted")
	}

	b.open("/tasks")
	b.click("pause note", `//tr[.//a[text()="note"]]//button[text()="Pause"]`)
	b.quiet("tasks")
	b.contrast("tasks")
	b.shoot("tasks")
	b.click("resume note", `//tr[.//a[text()="note"]]//button[text()="Resume"]`)

	b.open("/jobs/none")
	b.shoot("error")
	b.keyboard()
}

func TestTheDashboardWithAToken(t *testing.T) {
	s := startSite(t, token)
	b := openTab(s)
	s.call("POST", "/v1/jobs", `{"id":"order:1","task":"note","in":"1h"}`)
	b.open("/jobs?task=note")
	b.quiet("login")
	b.contrast("login")
	b.shoot("login")
	b.do("type a wrong token", chromedp.SendKeys(`input[name="token"]`, "wrong"))
	b.click("log in", `//main//button`)
	if text := b.text(); !strings.Contains(text, "This is not the token.") {
		t.Error("a wrong token is not refused")
	}
	b.mu.Lock()
	b.troubles = nil // the browser tells of the 401
	b.mu.Unlock()
	b.do("type the token", chromedp.SendKeys(`input[name="token"]`, token))
	b.click("log in", `//main//button`)
	if text := b.text(); !strings.Contains(text, "order:1") {
		t.Error("it did not come to the page that was asked for")
	}
	s.call("POST", "/v1/jobs", `{"id":"order:2","task":"note","in":"1h"}`)
	b.until("the page follows", `document.body.innerText.includes("order:2")`)
	b.click("cancel order:2", `//tr[.//a[text()="order:2"]]//button[text()="Cancel"]`)
	b.quiet("jobs")
	b.click("log out", `//button[text()="Log out"]`)
	b.open("/jobs")
	if text := b.text(); strings.Contains(text, "order:1") {
		t.Error("it is not logged out")
	}
}

// keyboard reaches what can be done by Tab alone, and sees where it is.
func (t *tab) keyboard() {
	t.Helper()
	t.open("/jobs")
	var reached []string
	for range 40 {
		if err := chromedp.Do(t.ctx, chromedp.KeyEvent("\t")); err != nil {
			t.Fatal(err)
		}
		reached = append(reached, ask[string](t, `(() => {
			const e = document.activeElement, s = getComputedStyle(e);
			if (e === document.body) return "the end"; // between the last and the first
			return (e.textContent || e.name || "").trim() + (s.outlineStyle === "none" ? " (not seen)" : "");
		})()`))
	}
	t.Log("did: press Tab 40 times")
	all := strings.Join(reached, "|")
	for _, want := range []string{"Skip to the content", "Overview", "Dead letters", "prefix", "Show", "Cancel"} {
		if !strings.Contains(all, want) {
			t.Errorf("Tab does not reach %q: %s", want, all)
		}
	}
	if strings.Contains(all, "(not seen)") {
		t.Errorf("the focus is not seen: %s", all)
	}
}

// contrast looks at all text of a page, in light and in dark: WCAG 2.2 asks for 4.5 to 1.
func (t *tab) contrast(where string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		t.scheme(scheme)
		for _, text := range ask[[]string](t, contrastScript) {
			t.Errorf("%s, %s: %s", where, scheme, text)
		}
	}
	t.scheme("")
}

const contrastScript = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return { rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1 }; };
	const light = rgb => { const [r, g, b] = rgb.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a > 0) return c.rgb; } return [255, 255, 255]; };
	const low = [];
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim() !== "");
		const box = e.getBoundingClientRect();
		if (!own || box.width < 2 || box.height < 2) continue;
		const style = getComputedStyle(e);
		const color = parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color).rgb;
		const [a, b] = [light(color), light(ground(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) low.push(e.tagName + " " + e.textContent.trim().slice(0, 30) + ": " + ratio.toFixed(2));
	}
	return low;
})()`
