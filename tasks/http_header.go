package tasks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

// idempotencyKey is not in Go's canonical form on purpose: net/http sends a
// request a second time by itself if it finds the canonical one, and a task
// with at-most-once delivery must not be sent twice. Receivers see no
// difference.
const idempotencyKey = "idempotency-key"

// tell sets the headers that tell of the run.
func tell(header http.Header, job registry.Job) {
	asItIs := func(string) bool { return true }
	for _, f := range about(job, asItIs) {
		name := "Keyfuse-" + strings.ReplaceAll(f.name, "_", "-")
		header.Set(name, encodeHeader(fmt.Sprint(f.value)))
	}
	header[idempotencyKey] = []string{encodeHeader(job.RunID)}
	if job.Trace != "" {
		header.Set("Traceparent", job.Trace)
	}
}

// encodeHeader percent-encodes a value so strictly that it can neither break
// nor leave its header, and that decoders of paths and of forms agree on it.
func encodeHeader(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; isAlphanumeric(rune(c)) || strings.IndexByte("-._~:/@", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isAlphanumeric(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// signingKey returns what a secret stands for, or nil if there is none.
func signingKey(secret string) ([]byte, error) {
	encoded, isBase64 := strings.CutPrefix(secret, "whsec_")
	switch {
	case secret == "":
		return nil, nil
	case !isBase64:
		return []byte(secret), nil
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(key) == 0 {
		return nil, errors.New("secret begins with whsec_ but does not go on in base64")
	}
	return key, nil
}

// sign sets the headers of Standard Webhooks, version 1, symmetric.
func sign(header http.Header, key []byte, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// ownHeader checks the configured headers. Its errors name them and never show
// a value.
func ownHeader(configured map[string]string) (http.Header, error) {
	header := http.Header{"User-Agent": {"keyfuse"}}
	given := make(map[string]bool, len(configured))
	for name, value := range configured {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return nil, fmt.Errorf("header %s: no such name can be sent", quoteHead(name, 128))
		case isReserved(canonical):
			return nil, fmt.Errorf("header %s is one that the task sets itself", canonical)
		case given[canonical]:
			return nil, fmt.Errorf("header %s is given twice", canonical)
		case strings.ContainsFunc(value, isControl):
			return nil, fmt.Errorf("the value of header %s holds a line break or another control character", canonical)
		}
		given[canonical] = true
		header.Set(canonical, value)
	}
	return header, nil
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !isAlphanumeric(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

func isReserved(canonical string) bool {
	if strings.HasPrefix(canonical, "Keyfuse-") {
		return true
	}
	return slices.Contains([]string{
		"Idempotency-Key", "Traceparent", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
		"Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade",
	}, canonical)
}

// minSecret is how long a configured value must be to be taken for a secret:
// shorter ones would blank out ordinary words.
const minSecret = 8

// redactor blanks out what the request told a server in confidence and the
// server said back, as debugging servers do.
func redactor(target *url.URL, header http.Header) *strings.Replacer {
	var secrets []string
	for name, values := range header {
		if !slices.Contains([]string{"User-Agent", "Content-Type", "Accept"}, name) {
			secrets = append(secrets, values[0])
			secrets = append(secrets, strings.Fields(values[0])...)
		}
	}
	for _, values := range target.Query() {
		secrets = append(secrets, values...)
	}
	if target.User != nil {
		name := target.User.Username()
		password, _ := target.User.Password()
		secrets = append(secrets, name, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may begin with another
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...)
}
