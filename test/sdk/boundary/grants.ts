import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Capabilities, coversProgram, Grants } from '@portico/sdk/host';

export const lab = Lab.script();
const { describe, it } = lab;

describe('coversProgram', () => {
    it('lets a star stand for any part of a name, and for none of a path', () => {
        const yes = [
            ['*', '/any/thing'],
            ['git', 'git'],
            ['php*', 'php'],
            ['php*', 'php8.2'],
            ['php-fpm*', 'php-fpm8.2'],
            ['*-dump', 'mariadb-dump'],
            ['a*b*c', 'aXbYbc'],
            ['/usr/lib/postgresql/*/bin/pg_*', '/usr/lib/postgresql/15/bin/pg_dump'],
            // A pattern covers a narrower one.
            ['php*', 'php-fpm*'],
            ['php-fpm*', 'php-fpm*'],
            ['a.c', 'a.c']
        ];
        const no = [
            ['php*', '*'],
            ['php*', '/tmp/php8.2'],
            ['php*', 'php/../sh'],
            ['php*', 'xphp8.2'],
            ['php-fpm*', 'php*'],
            ['a*bc', 'abXc'],
            ['ab*b', 'ab'],
            ['a.c', 'abc'],
            ['/usr/lib/postgresql/*/bin/psql', '/usr/lib/postgresql/15/16/bin/psql'],
            ['/usr/lib/postgresql/*/bin/psql', '/usr/lib/postgresql/../bin/psql'],
            ['/usr/lib/postgresql/*/bin/psql', '/usr/lib/postgresql/./bin/psql'],
            ['/opt/*', '/opt/..'],
            ['/opt/*', '/opt/a/b'],
            ['git', 'git*'],
            ['(a+)+*', 'aaaa']
        ];
        for (const [pattern = '', program = ''] of yes) {
            expect(coversProgram(pattern, program), `${pattern} ${program}`).to.be.true();
        }
        for (const [pattern = '', program = ''] of no) {
            expect(coversProgram(pattern, program), `${pattern} ${program}`).to.be.false();
        }
    });

    it('takes no longer for a pattern that is made to take long', () => {
        const began = performance.now();
        expect(coversProgram('a*'.repeat(500), `${'a'.repeat(1000)}b/`)).to.be.false();
        expect(coversProgram(`${'*a'.repeat(500)}c`, 'a'.repeat(1024))).to.be.false();
        expect(performance.now() - began).to.be.below(200);
    });
});

describe('Grants', () => {
    it('gives programs that a pattern of the manifest and one of the admin both name', () => {
        const grants = (asked: readonly string[], granted: readonly string[]): Grants => {
            const given: Capabilities = { exec: granted };
            return new Grants('test', { exec: asked }, () => given);
        };
        expect(grants(['php*', 'git'], ['php-fpm*', 'sh']).list('exec')).to.equal(['php-fpm*']);
        expect(grants(['php*', 'git'], ['php-fpm*']).has('exec', 'php-fpm8.2')).to.be.true();
        expect(grants(['php*', 'git'], ['php-fpm*']).has('exec', 'php8.2')).to.be.false();
        expect(grants(['git'], ['g*']).list('exec')).to.equal(['git']);
        expect(grants(['*'], ['php*']).list('exec')).to.equal(['php*']);
        expect(grants(['php*'], ['*']).list('exec')).to.equal(['php*']);
        expect(grants(['php*'], ['git']).list('exec')).to.equal([]);
        // Only programs have patterns.
        const files: Capabilities = { files: ['/srv/*'], users: ['w*'] };
        const other = new Grants('test', files, () => files);
        expect([other.has('files', '/srv/a'), other.has('users', 'www-data')]).to.equal([false, false]);
    });
});
