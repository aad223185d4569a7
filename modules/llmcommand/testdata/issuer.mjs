// An issuer of OpenID Connect, npm's oidc-provider, in which anybody logs in by any name. Its first argument
// is how many seconds an ID token is valid. It prints its address, then a line for each grant.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'weir-cli',
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: ['code'],
    redirect_uris: ['http://127.0.0.1/callback'],
  }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false, // the email is in the ID token, as the Caddyfile asks
  cookies: { keys: ['test'] },
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, email: `${sub}@example.com`, email_verified: true }) }),
  ttl: { IdToken: Number(process.argv[1]), AccessToken: Number(process.argv[1]) },
});
provider.on('grant.success', (ctx) => console.log(ctx.oidc.params.grant_type));
provider.on('server_error', (_, err) => console.error(err));
server.on('request', provider.callback());
console.log(issuer);
