// Logs in and prints a token: PASSWORD=… node login.mjs <address of the panel> <user name> [second factor]
import { createHash } from 'node:crypto';

const [panel, username, totp = ''] = process.argv.slice(2);
const login = async (options) => (await fetch(`${panel}/api/auth/login`, options)).json();
const { algorithm, challenge, maxnumber, salt, signature } = (await login()).data;
let number = 0;
while (
    number < maxnumber &&
    createHash('sha256')
        .update(salt + number)
        .digest('hex') !== challenge
)
    number += 1;
const altcha = Buffer.from(JSON.stringify({ algorithm, challenge, number, salt, signature })).toString(
    'base64'
);
const body = JSON.stringify({ username, password: process.env.PASSWORD, totp, altcha });
const { message, data } = await login({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body
});
if (!data?.token) throw new Error(message);
console.log(data.token);
