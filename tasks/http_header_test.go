package tasks

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestHTTPRefusesWhatItCouldNotSendAndShowsNoValue(t *testing.T) {
	const fine = "https://example.com/hook"
	for name, c := range map[string]struct {
		config HTTP
		says   string
	}{
		"no url":               {HTTP{}, "url is not of the form"},
		"relative url":         {HTTP{URL: "/hunter2"}, "url is not of the form"},
		"other scheme":         {HTTP{URL: "ftp://hunter2/x"}, "url is not of the form"},
		"no host":              {HTTP{URL: "http://:80/hunter2"}, "url is not of the form"},
		"unreadable url":       {HTTP{URL: "http://a:hunter2@[::1/"}, "url is not of the form"},
		"control in url":       {HTTP{URL: "http://a/hunter2\n"}, "url is not of the form"},
		"method":               {HTTP{URL: fine, Method: "FETCH"}, `method "FETCH"`},
		"secret no base64":     {HTTP{URL: fine, Secret: "whsec_hunter2!"}, "secret begins with whsec_"},
		"secret without key":   {HTTP{URL: fine, Secret: "whsec_"}, "secret begins with whsec_"},
		"response limit":       {HTTP{URL: fine, MaxResponse: -1}, "response limit"},
		"header with a space":  {HTTP{URL: fine, Headers: map[string]string{"X y": "hunter2"}}, `header "X y"`},
		"empty header":         {HTTP{URL: fine, Headers: map[string]string{"": "hunter2"}}, `header ""`},
		"header value":         {HTTP{URL: fine, Headers: map[string]string{"X-A": "hunter2\r\nX: y"}}, "header X-A"},
		"header of our own":    {HTTP{URL: fine, Headers: map[string]string{"keyfuse-id": "hunter2"}}, "header Keyfuse-Id"},
		"signature header":     {HTTP{URL: fine, Headers: map[string]string{"webhook-signature": "hunter2"}}, "header Webhook-Signature"},
		"idempotency header":   {HTTP{URL: fine, Headers: map[string]string{"idempotency-key": "hunter2"}}, "header Idempotency-Key"},
		"length":               {HTTP{URL: fine, Headers: map[string]string{"content-length": "7"}}, "header Content-Length"},
		"header in two spells": {HTTP{URL: fine, Headers: map[string]string{"x-a": "hunter2", "X-A": "hunter2"}}, "header X-A is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			handler, err := NewHTTP(c.config)
			if err == nil || handler != nil {
				t.Fatalf("got %v, %v", handler, err)
			}
			wantContains(t, err.Error(), c.says)
			wantWithout(t, err.Error(), "hunter2")
		})
	}
}

func TestSignMatchesThePublishedVectorOfStandardWebhooks(t *testing.T) {
	key, err := signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	sign(header, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := header.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSigningKeyTakesASecretWithoutPrefixAsItIs(t *testing.T) {
	for secret, want := range map[string]string{"": "", "plain secret": "plain secret", "whsec_YWI=": "ab", "whsec_YWI": "ab"} {
		key, err := signingKey(secret)
		if err != nil || !bytes.Equal(key, []byte(want)) || (key == nil) != (secret == "") {
			t.Errorf("%q: key %q, %v", secret, key, err)
		}
	}
}

// FuzzEncodeHeader checks that any id is sent in harmless characters and comes
// back whole through decoders of paths and of forms.
func FuzzEncodeHeader(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		encoded := encodeHeader(id)
		if strings.Trim(encoded, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/@%") != "" {
			t.Errorf("%q is sent as %q", id, encoded)
		}
		for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
			if back, err := decode(encoded); err != nil || back != id {
				t.Errorf("%q came back as %q, %v", id, back, err)
			}
		}
	})
}

func TestEncodeHeaderLeavesOrdinaryIDsReadable(t *testing.T) {
	for id, want := range map[string]string{
		"order:42": "order:42", "com.example/Cls_1~a@b-c": "com.example/Cls_1~a@b-c",
		"a b": "a%20b", "100%": "100%25", "a+b": "a%2Bb", "é": "%C3%A9", "\r\n": "%0D%0A",
	} {
		if got := encodeHeader(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

func TestRedactorBlanksOutTheLongerOfTwoSecretsThatBeginAlike(t *testing.T) {
	target := &url.URL{RawQuery: "a=secretone&b=secretone-longer&c=short"}
	got := redactor(target, http.Header{}).Replace("secretone-longer secretone short")
	if want := "[redacted] [redacted] short"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
