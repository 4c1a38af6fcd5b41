// Package browser has only tests: the dashboard in a real browser, Debian's chromium, as
// people use it. It is a module of its own, so that users' builds never meet what drives
// the browser.
//
//	go test .                    needs chromium and redis-server
//	go test -artifacts .         keeps pictures of each page, below _artifacts
//	KEYFUSE_REQUIRE_BROWSER=1    fails where there is no browser, else it skips
package browser
