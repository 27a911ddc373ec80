import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createRegistry, type Registry } from '../../../registry/src/index.ts';
import { type Outcome, outcomesOf } from '../../support/registry/outcomes.ts';
import { pluginCode, pluginPackage } from '../../support/registry/packages.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const fixtures = realpathSync(join(import.meta.dirname, '../../fixtures/plugins'));
const importMs = 700;

describe('createRegistry: discover, resolve and load', () => {
    let dataDir: string;
    let registry: Registry;
    let outcomes: Map<string, Outcome>;
    let order: string[];
    const asItEnded: string[] = [];
    let tookMs: number;
    const listeners = process.listenerCount('newListener');

    before(async () => {
        dataDir = mkdtempSync(join(tmpdir(), 'portico-pipeline-'));
        registry = await createRegistry({
            dataDir,
            registryUrl: 'http://127.0.0.1:9/',
            hmacKey: new Uint8Array(32),
            reserved: new Set(['hosts']),
            host: { sdk: '1.0.0', node: process.versions.node },
            log: { info: () => undefined, warn: () => undefined },
            importMs
        });
        const began = performance.now();
        const answer = await outcomesOf(
            registry,
            [{ origin: 'folder', path: fixtures }],
            () => true,
            ({ name }) => asItEnded.push(name)
        );
        tookMs = performance.now() - began;
        order = answer.map(({ name }) => name);
        outcomes = new Map(
            answer.map((each) => [
                each.plugin === null ? each.name : each.plugin.package.replace('@portico-fixture/', ''),
                each
            ])
        );
    });
    after(() => rmSync(dataDir, { recursive: true, force: true }));

    const ended = (name: string): readonly unknown[] => {
        const { stage, failure, definition } = outcomes.get(name) as Outcome;
        return failure === null ? [stage, definition !== null] : [stage, failure.stage, failure.code];
    };

    it('leaves each broken package where it broke, with the stage and the code', () => {
        const expected: Record<string, readonly unknown[]> = {
            'no-manifest': [null, 'discovered', 'MANIFEST_MISSING'],
            'bad-package': [null, 'discovered', 'PACKAGE_INVALID'],
            'bad-manifest': [null, 'discovered', 'MANIFEST_INVALID'],
            'unknown-key': [null, 'discovered', 'MANIFEST_UNKNOWN_KEY'],
            'reserved-name': [null, 'discovered', 'NAME_RESERVED'],
            'no-sdk-range': [null, 'discovered', 'SDK_RANGE_MISSING'],
            'wrong-sdk': ['discovered', 'resolved', 'SDK_RANGE'],
            'wrong-node': ['discovered', 'resolved', 'NODE_RANGE'],
            'missing-requirement': ['discovered', 'resolved', 'REQUIREMENT_MISSING'],
            'wrong-requirement': ['discovered', 'resolved', 'REQUIREMENT_RANGE'],
            'cycle-one': ['discovered', 'resolved', 'REQUIREMENT_FAILED'],
            'cycle-two': ['discovered', 'resolved', 'CYCLE'],
            'duplicate-name-one': ['loaded', true],
            'duplicate-name-two': ['discovered', 'resolved', 'NAME_TAKEN'],
            'no-entry': ['resolved', 'loaded', 'ENTRY_MISSING'],
            'entry-outside': ['resolved', 'loaded', 'ENTRY_MISSING'],
            'throws-at-import': ['resolved', 'loaded', 'IMPORT_FAILED'],
            'rejects-at-import': ['resolved', 'loaded', 'IMPORT_FAILED'],
            'syntax-error': ['resolved', 'loaded', 'IMPORT_FAILED'],
            'import-missing': ['resolved', 'loaded', 'IMPORT_FAILED'],
            'no-definition': ['resolved', 'loaded', 'DEFINITION_MISSING'],
            'no-default': ['resolved', 'loaded', 'DEFINITION_MISSING'],
            'side-effect-timer': ['resolved', 'loaded', 'SIDE_EFFECT'],
            'side-effect-listener': ['resolved', 'loaded', 'SIDE_EFFECT'],
            'side-effect-server': ['resolved', 'loaded', 'SIDE_EFFECT'],
            'side-effect-child': ['resolved', 'loaded', 'SIDE_EFFECT'],
            'never-ends': ['resolved', 'loaded', 'IMPORT_TIMEOUT'],
            'bundled-sdk': ['resolved', 'loaded', 'SDK_BUNDLED'],
            'sdk-dependency': ['resolved', 'loaded', 'SDK_BUNDLED']
        };
        expect(Object.fromEntries(Object.keys(expected).map((name) => [name, ended(name)]))).to.equal(
            expected
        );
        // The others break later, or not at all.
        const others = [...outcomes.keys()].filter((name) => !Object.hasOwn(expected, name));
        expect(others.filter((name) => outcomes.get(name)?.stage !== 'loaded')).to.equal([]);
        expect(others).to.include([
            'sound',
            'setup-throws',
            'stop-hangs',
            'handler-hangs',
            'failed-requirement'
        ]);
    });

    it('says in one sentence what is wrong', () => {
        const says = (name: string): string => outcomes.get(name)?.failure?.message ?? '';
        expect(says('throws-at-import')).to.equal(
            'Importing @portico-fixture/throws-at-import failed: There is no configuration'
        );
        expect(says('side-effect-timer')).to.match(
            /^Importing @portico-fixture\/side-effect-timer started a timer at side-effect-timer\/index\.js:\d+; work begins in onStart$/
        );
        expect(says('side-effect-listener')).to.contain('a listener for uncaughtException of the process');
        expect(says('side-effect-server')).to.contain('a server');
        expect(says('side-effect-child')).to.contain('a child process');
        expect(says('never-ends')).to.equal(
            `Importing @portico-fixture/never-ends has not ended after ${importMs} ms`
        );
        expect(says('bundled-sdk')).to.contain('a copy of @portico/sdk within index.js');
    });

    it('answers those that can start first, each after what it requires, and tells of each as soon as it is through', () => {
        expect(order.indexOf('failed-requirement')).to.be.above(order.indexOf('throws-at-import'));
        expect(order.indexOf('wrong-sdk')).to.be.above(order.indexOf('sound'));
        expect(asItEnded.at(-1)).to.equal('never-ends');
        expect(asItEnded.toSorted()).to.equal(order.toSorted());
        expect(tookMs).to.be.below(importMs * 10); // they do not wait for one another
    });

    it('ends what an import started, and keeps no listener of its own', () => {
        expect(
            process
                .listeners('uncaughtException')
                .filter((listener) => String(listener) === '() => undefined')
        ).to.equal([]);
        expect(process.listenerCount('newListener')).to.equal(listeners);
        expect(
            process
                .getActiveResourcesInfo()
                .filter((each) => each === 'ProcessWrap' || each === 'TCPServerWrap')
        ).to.equal([]);
    });

    it('imports nothing that is not enabled, and imports anew only when it is told to', async () => {
        const place = { origin: 'folder' as const, path: fixtures };
        const resolved = await outcomesOf(registry, [place], () => false);
        expect(new Set(resolved.map(({ stage }) => stage))).to.equal(
            new Set([null, 'discovered', 'resolved'])
        );
        const { found } = await registry.discover([place]);
        const sound = found.find(({ folder }) => folder.endsWith('/sound'));
        const load = async (fresh: boolean): Promise<unknown> => {
            const loaded = await registry.load(sound as NonNullable<typeof sound>, { fresh });
            return 'definition' in loaded ? loaded.definition : loaded.failure;
        };
        const first = outcomes.get('sound')?.definition;
        expect((await load(false)) === first).to.be.true();
        const again = (await load(true)) as { readonly setup?: unknown };
        expect([again === first, typeof again.setup]).to.equal([false, 'function']);
    });

    it('supplies its own SDK wherever a plugin lies, in place of the copy that an author has for the types', async () => {
        const folder = join(dataDir, 'outside/author');
        mkdirSync(join(folder, 'node_modules/@portico/sdk'), { recursive: true });
        writeFileSync(join(folder, 'package.json'), JSON.stringify(pluginPackage('author', '1.0.0')));
        writeFileSync(join(folder, 'index.js'), pluginCode('author'));
        writeFileSync(
            join(folder, 'node_modules/@portico/sdk/package.json'),
            JSON.stringify({ name: '@portico/sdk', version: '0.1.0', exports: './index.js' })
        );
        writeFileSync(
            join(folder, 'node_modules/@portico/sdk/index.js'),
            `throw new Error('the copy was loaded')`
        );
        const [author] = await outcomesOf(registry, [{ origin: 'folder', path: join(dataDir, 'outside') }]);
        expect(author).to.include({ name: 'author', stage: 'loaded', failure: null });
        // A process without this file finds it by the link beside the installed packages.
        const installed = join(dataDir, 'plugins/linked/1');
        mkdirSync(installed, { recursive: true });
        writeFileSync(
            join(installed, 'index.js'),
            `${pluginCode('linked')}\nconsole.log('imported');\n`.replace(
                'import {',
                `import '@portico/sdk';\nimport {`
            )
        );
        writeFileSync(join(installed, 'package.json'), '{"type":"module"}');
        expect(
            execFileSync(process.execPath, [...process.execArgv, join(installed, 'index.js')], {
                encoding: 'utf8'
            })
        ).to.equal('imported\n');
    });
});
