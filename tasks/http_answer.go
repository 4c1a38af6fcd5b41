package tasks

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

const (
	// errorAnswer is how much of an answer its error quotes.
	errorAnswer = 256
	// answerHead is how much of it is looked at, so that a secret that reaches
	// over the end of the quote is found whole.
	answerHead = 4 << 10
	// maxRetryAfter bounds what a server may ask for.
	maxRetryAfter = 24 * time.Hour
)

// judge reads as much of the answer as it may and returns what it means.
func (t *httpTask) judge(resp *http.Response) error {
	body := io.LimitReader(resp.Body, t.maxResponse)
	// A body that breaks off changes nothing: the status has been said.
	head, _ := io.ReadAll(io.LimitReader(body, answerHead))
	_, _ = io.Copy(io.Discard, body)

	code := resp.StatusCode
	if code >= 200 && code <= 299 {
		return nil
	}
	err := fmt.Errorf("%s %s answered %s: %s", t.method, t.origin, statusOf(resp), quoteHead(t.redact.Replace(string(head)), errorAnswer))
	if !isRetried(code) {
		return registry.Dead(err)
	}
	if delay, ok := retryAfter(resp.Header, time.Now()); ok {
		return registry.RetryAfter(delay, err)
	}
	return err
}

func isRetried(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return code >= 500 && code <= 599
}

// statusOf names the status in our words, not the server's, and says where a
// redirect that was not followed leads, as far as that is no secret.
func statusOf(resp *http.Response) string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	target, err := resp.Location()
	if err != nil || resp.StatusCode/100 != 3 {
		return status
	}
	return fmt.Sprintf("%s, a redirect to %s that is not followed (set url to the final address)", status, quoteHead(originOf(target), errorAnswer))
}

// retryAfter returns the delay that an answer asks for, at most 24 h, and
// whether it does. A date counts from the server's own Date, as its clock may
// differ from ours. What is no delay is no request for one: garbage, zero, and
// a date that has passed leave the wait to the task's backoff.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if isDigits(value) {
		return capDelay(seconds(value))
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if theirs, err := http.ParseTime(header.Get("Date")); err == nil {
		now = theirs
	}
	return capDelay(until.Sub(now))
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// seconds reads digits as seconds; a number too large for that is a long time.
func seconds(digits string) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(maxRetryAfter/time.Second) {
		return maxRetryAfter
	}
	return time.Duration(n) * time.Second
}

func capDelay(d time.Duration) (time.Duration, bool) {
	return min(d, maxRetryAfter), d > 0
}
