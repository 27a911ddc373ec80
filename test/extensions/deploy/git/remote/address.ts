import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { parseAddress, submoduleAddress } from '../../../../../extensions/deploy/src/git/remote/address.ts';
import { refForm } from '../../../../../extensions/deploy/src/git/remote/refs.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const codeOf = (work: () => unknown): number => {
    try {
        work();
        return 0;
    } catch (error) {
        return (error as { code: number }).code;
    }
};

describe('parseAddress', () => {
    it('reads https, ssh and the short form of ssh', () => {
        expect(parseAddress('https://Git.Example/acme/shop.git')).to.equal({
            scheme: 'https',
            url: 'https://git.example/acme/shop.git',
            host: 'git.example',
            port: 443,
            hasPort: false
        });
        expect(parseAddress('ssh://git@git.example:2222/acme/shop')).to.include({
            port: 2222,
            hasPort: true
        });
        expect(parseAddress('git@git.example:acme/shop.git')).to.include({ scheme: 'ssh', port: 22 });
        expect(parseAddress('http://[::1]:8080/a.git')).to.include({ host: '::1', port: 8080 });
    });

    it('refuses every other protocol, passwords, and what git or a shell would read in another way', () => {
        const refused = [
            '-uhelp',
            '--upload-pack=touch /tmp/x',
            'ext::sh -c id',
            'ext::sh',
            'file:///etc',
            '/etc/passwd',
            '../up',
            'git://git.example/a',
            'ftp://git.example/a',
            'https://user:secret@git.example/a',
            'https://token@git.example/a',
            'ssh://-oProxyCommand=id/a',
            'ssh://git@-oProxyCommand=id/a',
            'git@-oProxyCommand=id:a',
            '-git@git.example:a',
            'git@git.example:-a',
            'git@git.example::a',
            'a::git@git.example:b',
            'https://git.example/a?x=1',
            'https://git.example/a#x',
            'https://git.example/$(id)',
            "ssh://git@git.example/a'b",
            'https://git.example/a b',
            'https://git.example/',
            'https:///a',
            'http://git.example:99999/a'
        ];
        expect(refused.filter((text) => codeOf(() => parseAddress(text)) !== 42250)).to.equal([]);
    });
});

describe('submoduleAddress', () => {
    it('follows relative addresses on the same host, and refuses what leaves it', () => {
        const parent = parseAddress('https://git.example/acme/shop.git');
        expect(submoduleAddress(parent, '../lib.git').url).to.equal('https://git.example/acme/lib.git');
        expect(submoduleAddress(parent, 'https://other.example/a').host).to.equal('other.example');
        const refused = ['../../../other.example/a', 'ext::sh -c id', '/etc', '-x', './-x', 'file:///etc'];
        expect(refused.filter((text) => codeOf(() => submoduleAddress(parent, text)) !== 42250)).to.equal([]);
    });
});

describe('refForm', () => {
    it('follows git-check-ref-format, and takes nothing that begins with a hyphen', () => {
        const good = ['main', 'feature/x', 'v1.2.3', 'a-b', 'ä'];
        const bad = [
            '',
            '-x',
            '--upload-pack=x',
            'a..b',
            'a//b',
            '/a',
            'a/',
            'a.',
            '.a',
            'a/.b',
            'a.lock',
            'a@{b',
            '@',
            'a b',
            'a~',
            'a^',
            'a:b',
            'a?',
            'a*',
            'a[',
            'a\\b',
            'a\nb'
        ];
        expect(good.filter((name) => !refForm.test(name))).to.equal([]);
        expect(bad.filter((name) => refForm.test(name))).to.equal([]);
    });
});
