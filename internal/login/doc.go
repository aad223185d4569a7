// Package login keeps a user's logins at gateways, and makes fresh tokens of them: by the refresh
// token of an OpenID Connect issuer, or by an API key, which is its own token.
//
// File is what is kept: login.json in the user's configuration folder, readable by the user alone.
// It has the tokens of minutes; what makes new ones is in the system's keychain where there is one.
package login
