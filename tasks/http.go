package tasks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

const (
	defaultMaxResponse = 64 << 10
	// answerWait is how long the body of an answer is waited for. What becomes
	// of the run is known from the status alone.
	answerWait = time.Second
)

// HTTP sends each run to a URL, with the payload as the body. What else a
// request says:
//
//   - Keyfuse-Id, Keyfuse-Task, Keyfuse-Run-Id, Keyfuse-Attempt, Keyfuse-Due,
//     Keyfuse-Reason and, when it is not zero, Keyfuse-Count. Their values are
//     percent-encoded but for ASCII letters, digits and - . _ ~ : / @ and so
//     any URL decoder gives back the id, byte for byte.
//   - Idempotency-Key: the run id, the same for every attempt.
//   - Content-Type: application/json if the payload is valid JSON, else
//     application/octet-stream; none with an empty payload.
//   - With a Secret, the webhook-id (the run id), webhook-timestamp and
//     webhook-signature headers of Standard Webhooks (standardwebhooks.com).
type HTTP struct {
	// URL is where to send to, http or https. User and password in it become
	// basic authentication.
	URL string
	// Method is GET, POST, PUT, PATCH or DELETE. Empty means POST.
	Method string
	// Secret signs the requests. Behind the prefix whsec_ it is base64, else it
	// is taken as it is. Empty means that requests are not signed.
	Secret string
	// Headers are sent as well and win over Content-Type and User-Agent. Those
	// that the task sets itself can't be among them.
	Headers map[string]string
	// Client sends the requests. Nil means one of the task's own that uses the
	// proxy the environment names and sets no limit on time but the run's
	// context. Redirects are not followed unless Client has a CheckRedirect.
	Client *http.Client
	// MaxResponse is how many bytes of an answer's body are read, so that the
	// connection can be used again; a longer one is given up with its
	// connection, as is one that takes longer than a second. Zero means 64 KiB.
	MaxResponse int64
}

type httpTask struct {
	client      *http.Client
	method, url string
	origin      string // as much of url as errors may show: a path can be a secret
	header      http.Header
	host        string
	key         []byte // nil: requests are not signed
	redact      *strings.Replacer
	maxResponse int64
}

// NewHTTP returns a task that sends a request a run. An answer 2xx is done;
// 408, 425, 429 and 5xx are errors to be retried, after the answer's
// Retry-After if it has one; any other answer, redirects too, is final and
// marked with registry.Dead. No answer at all is an error to be retried. A
// request is sent once an attempt, except that net/http repeats a GET whose
// connection broke.
//
// NewHTTP refuses a URL, method, secret or header that could not be sent, and
// a negative MaxResponse. Its errors show none of the values.
func NewHTTP(c HTTP) (registry.Handler, error) {
	t, err := c.task()
	if err != nil {
		return nil, fmt.Errorf("http task: %w", err)
	}
	return t, nil
}

func (c HTTP) task() (*httpTask, error) {
	target, err := parseTarget(c.URL)
	if err != nil {
		return nil, err
	}
	method, err := parseMethod(c.Method)
	if err != nil {
		return nil, err
	}
	key, err := signingKey(c.Secret)
	if err != nil {
		return nil, err
	}
	header, err := ownHeader(c.Headers)
	if err != nil {
		return nil, err
	}
	if c.MaxResponse < 0 {
		return nil, errors.New("the response limit is negative; leave it out for 64 KiB")
	}
	host := header.Get("Host")
	header.Del("Host")
	return &httpTask{
		client: notFollowing(c.Client), method: method, url: c.URL, origin: originOf(target),
		header: header, host: host, key: key, redact: redactor(target, header),
		maxResponse: cmp.Or(c.MaxResponse, defaultMaxResponse),
	}, nil
}

func parseTarget(raw string) (*url.URL, error) {
	target, err := url.Parse(raw)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Hostname() == "" {
		return nil, errors.New("url is not of the form http://host/path or https://host/path (not shown: it may hold a secret)")
	}
	return target, nil
}

func originOf(target *url.URL) string { return target.Scheme + "://" + target.Host }

func parseMethod(method string) (string, error) {
	switch m := strings.ToUpper(cmp.Or(method, http.MethodPost)); m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return m, nil
	}
	return "", fmt.Errorf("method %s: want GET, POST, PUT, PATCH or DELETE", quoteHead(method, 32))
}

// notFollowing returns a client that takes a redirect for an answer, unless the
// given one has its own mind about them.
func notFollowing(given *http.Client) *http.Client {
	client := http.Client{Transport: newTransport()}
	if given != nil {
		client = *given
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &client
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Handle sends the run and judges the answer.
func (t *httpTask) Handle(ctx context.Context, job registry.Job) error {
	sendCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := t.request(sendCtx, job)
	if err != nil {
		return err
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", t.method, t.origin, because(ctx, clipped{withoutURL(err)}))
	}
	defer resp.Body.Close()
	defer time.AfterFunc(answerWait, cancel).Stop()
	return t.judge(resp)
}

func (t *httpTask) request(ctx context.Context, job registry.Job) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, t.method, t.url, bytes.NewReader(job.Payload))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", t.method, t.origin, withoutURL(err))
	}
	req.Host = cmp.Or(t.host, req.Host)
	req.Header = t.header.Clone()
	if len(job.Payload) > 0 && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", contentType(job.Payload))
	}
	tell(req.Header, job)
	if t.key != nil {
		sign(req.Header, t.key, encodeHeader(job.RunID), time.Now(), job.Payload)
	}
	return req, nil
}

func contentType(payload []byte) string {
	if json.Valid(payload) {
		return "application/json"
	}
	return "application/octet-stream"
}

// withoutURL strips the URL that net/http's errors begin with.
func withoutURL(err error) error {
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		return withURL.Err
	}
	return err
}
