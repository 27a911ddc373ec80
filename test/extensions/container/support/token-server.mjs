// The server of tokens that a registry sends its clients to: for the right password it signs one that says what may be done.
import { randomUUID, sign, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [port, folder, login] = process.argv.slice(2);
const key = readFileSync(`${folder}/tokens.key`);
const certificate = new X509Certificate(readFileSync(`${folder}/tokens.pem`)).raw.toString('base64');
const encode = (part) => Buffer.from(JSON.stringify(part)).toString('base64url');

function tokenFor(account, service, scopes) {
    const now = Math.floor(Date.now() / 1_000);
    const access = scopes.map((scope) => {
        const [type, name, actions] = scope.split(/:(?=[^/]*$|[^:]*:[^:]*$)/);
        return { type, name, actions: actions.split(',') };
    });
    const claims = {
        iss: 'tokens',
        sub: account,
        aud: service,
        exp: now + 600,
        nbf: now - 60,
        iat: now,
        jti: randomUUID(),
        access
    };
    const text = `${encode({ typ: 'JWT', alg: 'ES256', x5c: [certificate] })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
}

createServer(({ url, headers }, response) => {
    const { searchParams } = new URL(url, 'http://tokens');
    if (headers.authorization !== `Basic ${Buffer.from(login).toString('base64')}`) {
        response.writeHead(401, { 'content-type': 'application/json' });
        response.end('{"errors":[{"code":"UNAUTHORIZED","message":"wrong user or password"}]}');
        return;
    }
    const scopes = searchParams.getAll('scope').flatMap((scope) => scope.split(' '));
    const token = tokenFor(login.split(':')[0], searchParams.get('service'), scopes);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ token, access_token: token, expires_in: 600 }));
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('up\n'));
