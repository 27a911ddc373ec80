import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    faultOfRedirect,
    isRegistered,
    redirectTo
} from '../../../../../core/src/features/auth/oauth/redirect.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('faultOfRedirect', () => {
    it('takes https, http on this machine, and the schemes of apps', () => {
        for (const uri of [
            'https://agent.example/callback?from=portico',
            'http://127.0.0.1:3118/callback',
            'http://127.0.0.1/callback',
            'http://[::1]:80/',
            'http://localhost:1455/auth/callback',
            'cursor://anysphere.cursor-mcp/oauth/callback',
            'com.example.agent:/callback'
        ]) {
            expect(faultOfRedirect(uri), uri).to.be.null();
        }
    });

    it('refuses what goes elsewhere, or means something to a browser', () => {
        for (const uri of [
            '',
            'callback',
            '//agent.example/callback',
            'http://agent.example/callback',
            'http://localhost.agent.example/',
            'http://localhost:80@agent.example/',
            'http://127.0.0.1\\@agent.example/',
            'http://127.0.0.2/',
            'http://2130706433/',
            'https://user@agent.example/',
            'https://agent.example/callback#here',
            'https://agent.example/call back',
            'https://agent.example/\ncallback',
            'javascript:alert(1)',
            'javascript://agent.example/%0aalert(1)',
            'data:text/html,x',
            'file:///etc/passwd',
            'ms-msdt:/id',
            `https://agent.example/${'a'.repeat(2048)}`
        ]) {
            expect(faultOfRedirect(uri), uri).to.be.a.string();
        }
    });
});

describe('isRegistered', () => {
    it('compares the whole text, but for the port of a loopback address', () => {
        const loopback = ['http://127.0.0.1:3118/callback'];
        expect(isRegistered(loopback, 'http://127.0.0.1:3118/callback')).to.be.true();
        expect(isRegistered(loopback, 'http://127.0.0.1:50000/callback')).to.be.true();
        expect(isRegistered(loopback, 'http://127.0.0.1/callback')).to.be.true();
        expect(isRegistered(['http://[::1]/cb'], 'http://[::1]:9/cb')).to.be.true();
        for (const asked of [
            'http://127.0.0.1:3118/callback/',
            'http://127.0.0.1:3118/callback?x=1',
            'http://127.0.0.1:3118/other',
            'http://localhost:3118/callback',
            'https://127.0.0.1:3118/callback',
            'http://127.0.0.1:3118@agent.example/callback'
        ]) {
            expect(isRegistered(loopback, asked), asked).to.be.false();
        }
        const remote = ['https://agent.example/callback'];
        expect(isRegistered(remote, 'https://agent.example/callback')).to.be.true();
        for (const asked of [
            'https://agent.example:444/callback',
            'https://agent.example/callback/..',
            'https://AGENT.example/callback',
            'https://agent.example/callback?'
        ]) {
            expect(isRegistered(remote, asked), asked).to.be.false();
        }
    });
});

describe('redirectTo', () => {
    it('adds to the query that is there, escaped, and leaves out what is not given', () => {
        expect(redirectTo('https://a.example/cb', { code: 'x', state: 'a&b=c' })).to.equal(
            'https://a.example/cb?code=x&state=a%26b%3Dc'
        );
        expect(redirectTo('app.example:/cb?from=1', { code: 'x', state: undefined })).to.equal(
            'app.example:/cb?from=1&code=x'
        );
    });
});
