package redact

import "testing"

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"/v1/chat/completions":                            "/v1/chat/completions",
		"/v1beta/models/m:generateContent?key=AIza":       "/v1beta/models/m:generateContent?key=",
		"/x?alt=sse&key=a&b=c":                            "/x?alt=sse&key=&b=c",
		"/x?%6bey=a":                                      "/x?%6bey=",
		"/x?API_KEY=a":                                    "/x?API_KEY=",
		"/x?api-version=2024-10-21":                       "/x?api-version=2024-10-21",
		"/x?X-Amz-Signature=a&X-Amz-Date=b":               "/x?X-Amz-Signature=&X-Amz-Date=",
		"/x?key":                                          "/x?key",
		"/x?accessToken=a&subscriptionKey=b&max_tokens=1": "/x?accessToken=&subscriptionKey=&max_tokens=1",
		"/x?Ocp-Apim-Subscription-Key=a&clientSecret=b":   "/x?Ocp-Apim-Subscription-Key=&clientSecret=",
		"/x?a=%zz&%zz=b":                                  "/x?a=%zz&%zz=",
		"https://u:p@api.example.com/v1?token=a#frag":     "https://api.example.com/v1?token=",
		"https://a.b/@me":                                 "https://a.b/@me",
		"/x?k%65y=1&flag":                                 "/x?k%65y=&flag",
		"":                                                "",
		"https://api.example.com":                         "https://api.example.com",
	} {
		if got := URL(raw); got != want {
			t.Errorf("URL(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestHeader(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "X-Api-Key": true, "Api-Key": true, "X-Goog-Api-Key": true,
		"Service-Auth": true, "Helicone-Auth": true, "Cookie": true,
		"Proxy-Authorization": true, "Set-Cookie": true, "X-Amz-Security-Token": true, "Ocp-Apim-Subscription-Key": true,
		"Cf-Aig-Authorization": true, "X-Portkey-Api-Key": true, "X-Auth-Token": true, "Sec-Websocket-Protocol": true,
		"Service-Prompt-Input-City": true, "X-Ratelimit-Limit-Tokens": false,
		"Content-Type": false, "Service-User-Id": false, "Authority": false,
	} {
		if got := Header(name); got != want {
			t.Errorf("Header(%q) = %v", name, got)
		}
	}
}
