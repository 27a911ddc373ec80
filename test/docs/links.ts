import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { corePermissions } from '../../core/src/features/users/roles/permissions.ts';
import {
    anchorsOf,
    blocksOf,
    checkedRows,
    linksOf,
    pages,
    readPage,
    root
} from '../support/docs/markdown.ts';

export const lab = Lab.script();
const { describe, it } = lab;

// docs/glossary.md, the last table. What stands in backticks is a name.
const isUnclear = (line: string): boolean =>
    /\b(somebody|nobody|anybody|everybody|whoever|whomever)\b/i.test(line.replace(/`[^`]*`/g, ''));

describe('docs', () => {
    it('links only to files and headings that are there', () => {
        const broken: string[] = [];
        let links = 0;
        for (const page of pages()) {
            for (const link of linksOf(readPage(page))) {
                links += 1;
                const [path = '', anchor] = link.split('#', 2);
                const target = path === '' ? page : normalize(join(dirname(page), path));
                if (
                    target.startsWith('..') ||
                    !existsSync(join(root, target)) ||
                    (anchor !== undefined && !anchorsOf(readPage(target)).has(anchor))
                ) {
                    broken.push(`${page}: ${link}`);
                }
            }
        }
        expect(broken).to.equal([]);
        expect(links).to.be.above(30);
    });

    it('is reached page by page from the README', () => {
        const seen = new Set(['README.md']);
        for (const page of seen) {
            for (const link of linksOf(readPage(page))) {
                const target = normalize(join(dirname(page), link.split('#', 1)[0] ?? ''));
                if (target.endsWith('.md') && existsSync(join(root, target))) {
                    seen.add(target);
                }
            }
        }
        expect(
            pages().filter((page) => !seen.has(page) && !page.startsWith('docs/adr/')),
            'link them from README.md'
        ).to.equal([]);
    });

    it('says who acts, in words that a newcomer understands', () => {
        const found = pages()
            .filter((page) => page !== 'docs/glossary.md' && page !== 'docs/contributing.md')
            .flatMap((page) => {
                const lines = readPage(page).split('\n');
                return lines.flatMap((line, at) => (isUnclear(line) ? [`${page}:${at + 1} ${line}`] : []));
            });
        expect(found).to.equal([]);
    });

    it('shows the examples that are there as files as they are', () => {
        const shown = pages().flatMap((page) =>
            blocksOf(readPage(page)).filter(({ name }) => name?.startsWith('docs/') === true)
        );
        expect(shown.map(({ name }) => name)).to.equal([
            'docs/examples/login.mjs',
            'docs/examples/hello/src/index.ts',
            'docs/examples/hello/test/hello.test.ts'
        ]);
        for (const { name, text } of shown) {
            expect(text, name ?? '').to.equal(readPage(name ?? ''));
        }
    });
});

describe('docs/security.md', () => {
    it('gives each role the permissions that it has', () => {
        const rows = checkedRows(readPage('docs/security.md'), 'permissions');
        expect(rows).to.equal(
            corePermissions.map(({ name, roles }) => [
                `\`${name}\``,
                ...(['viewer', 'operator', 'admin'] as const).map((role) =>
                    roles.includes(role) ? 'yes' : ''
                )
            ])
        );
    });
});
