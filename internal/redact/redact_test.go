package redact

import "testing"

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"/v1/chat/completions":                            "/v1/chat/completions",
		"/v1beta/models/m:generateContent?key=AIza":       "/v1beta/models/m:generateContent?key=",
		"/x?alt=sse&key=a&b=c":                            "/x?alt=sse&key=&b=",
		"/x?%6bey=a":                                      "/x",
		"/x?API_KEY=a":                                    "/x?API_KEY=",
		"/x?api-version=2024-10-21":                       "/x?api-version=2024-10-21",
		"/x?X-Amz-Signature=a&X-Amz-Date=b":               "/x?X-Amz-Signature=&X-Amz-Date=",
		"/x?key":                                          "/x",
		"/x?accessToken=a&subscriptionKey=b&max_tokens=1": "/x?accessToken=&subscriptionKey=&max_tokens=",
		"/x?Ocp-Apim-Subscription-Key=a&clientSecret=b":   "/x?Ocp-Apim-Subscription-Key=&clientSecret=",
		"/x?a=%zz&%zz=b":                                  "/x?a=",
		"https://u:p@api.example.com/v1?token=a#frag":     "https://api.example.com/v1?token=",
		"https://a.b/@me":                                 "https://a.b/@me",
		"/x?k%65y=1&flag":                                 "/x",
		"/x?code=a&pass=b&passwd=c&pwd=d&session=e&sessionid=f&keys=g":             "/x?code=&pass=&passwd=&pwd=&session=&sessionid=&keys=",
		"/x?key[]=a&%20key=b&key%00=c":                                             "/x?key[]=",
		"/x?alt=sse;key=a&beta=true;key=b":                                         "/x?alt=&beta=",
		"/x?limit=20&order=asc&after=msg_1&include[]=message.output_text.logprobs": "/x?limit=20&order=asc&after=msg_1&include[]=message.output_text.logprobs",
		"":                        "",
		"https://api.example.com": "https://api.example.com",
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
		"Service-Prompt-Input-City": true, "Service-Properties": true, "Service-Property-City": false, "X-Ratelimit-Limit-Tokens": false,
		"Apikey": true, "Token": true, "Auth": true, "Key": true, "X-Apikey": true, "X-Password": true, "X-Signature": true,
		"X-Ratelimit-Remaining-Tokens": false, "X-Monkey": false, "Author": false, "Keyword": false, "X-Author-Name": false,
		"Content-Type": false, "Service-User-Id": false, "Authority": false,
	} {
		if got := Header(name); got != want {
			t.Errorf("Header(%q) = %v", name, got)
		}
	}
}

func TestCredential(t *testing.T) {
	for name, want := range map[string]bool{
		"api_key": true, "apiKey": true, "APIKey": true, "OPENAI_API_KEY": true, "openai.key": true, "accessToken": true, "clientSecret": true,
		"password": true, "userPassword": true, "credentials": true, "session_cookie": true, "é_key": true,
		"user_id": false, "max_tokens": false, "team": false, "keyboard": false, "tokenizer": false, "": false,
	} {
		if got := Credential(name); got != want {
			t.Errorf("Credential(%q) = %v", name, got)
		}
	}
}
