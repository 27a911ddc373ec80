import { AsyncLocalStorage } from 'node:async_hooks';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createHookHost, type HookHost, isFailure, type TapFailure } from '@portico/sdk';

import { exampleHost } from '../../../support/plugins/example-host.ts';

export const lab = Lab.script();
const { beforeEach, describe, it } = lab;

const owner = (plugin: string) => ({ plugin, version: '1.0.0' });
const entry = { action: 'create', before: null, after: exampleHost('a.example') } as const;

let failures: TapFailure[];
let hooks: HookHost;

describe('createHookHost', () => {
    beforeEach(() => {
        failures = [];
        hooks = createHookHost((failure) => failures.push(failure));
    });

    it('isolates the taps of a notification and names the one that failed', async () => {
        const seen: string[] = [];
        const hook = hooks.define('panel.started', 'notify');
        hooks.tap(owner('a'), 'panel.started', () => {
            throw new Error('broken');
        });
        hooks.tap(owner('b'), 'panel.started', async () => void seen.push('b'));
        await hook.run({});
        expect(seen).to.equal(['b']);
        expect(
            failures.map(({ plugin, hook: name, error }) => [plugin, name, (error as Error).message])
        ).to.equal([['a', 'panel.started', 'broken']]);
    });

    it('refuses in the name of the guard that refused, and of one that failed', async () => {
        const hook = hooks.define('host.guard', 'guard');
        const untap = hooks.tap(owner('a'), 'host.guard', () => ({ refuse: 'Not on a Friday' }));
        const refused = await hook.run(entry).catch((error: unknown) => error);
        expect(isFailure(refused) && [refused.code, refused.message, refused.data]).to.equal([
            40920,
            'Not on a Friday',
            { plugin: 'a', hook: 'host.guard' }
        ]);
        untap();
        await hook.run(entry);
        hooks.tap(owner('b'), 'host.guard', () => Promise.reject(new Error('down')));
        await expect(hook.run(entry)).to.reject(/The plugin b failed/);
    });

    it('lets pass when the guard that fails open fails', async () => {
        const hook = hooks.define('auth.beforeLogin', 'guard', { failOpen: true });
        hooks.tap(owner('a'), 'auth.beforeLogin', () => {
            throw new Error('down');
        });
        await hook.run({ username: 'x', ip: null, userAgent: null });
        expect(failures).to.have.length(1);
    });

    it('hands a frozen value on, takes a new one, and never shows the edits of a tap that failed', async () => {
        const hook = hooks.define('host.beforeSave', 'waterfall');
        hooks.tap(owner('a'), 'host.beforeSave', (value) => {
            (value.host as Record<string, unknown>)['tags'] = ['half'];
        });
        hooks.tap(owner('b'), 'host.beforeSave', (value) => ({
            ...value,
            host: { ...value.host, tags: ['b'] }
        }));
        hooks.tap(owner('c'), 'host.beforeSave', () => undefined);
        const given = { before: null, host: { domain: 'a.example' } };
        expect(await hook.run(given)).to.equal({ before: null, host: { domain: 'a.example', tags: ['b'] } });
        expect(given).to.equal({ before: null, host: { domain: 'a.example' } });
        expect(failures.map((failure) => failure.plugin)).to.equal(['a']);
    });

    it('ends a tap that hangs, tells it, and goes on', async () => {
        let told = false;
        const hook = hooks.define('panel.started', 'notify', { timeoutSeconds: 0.02 });
        hooks.tap(
            owner('a'),
            'panel.started',
            (_payload, { signal }) =>
                new Promise(() =>
                    signal.addEventListener('abort', () => {
                        told = true;
                    })
                )
        );
        await hook.run({});
        expect([told, failures[0]?.plugin]).to.equal([true, 'a']);
    });

    it('orders by stage and wish; unknown names and circles change nothing', async () => {
        const seen: string[] = [];
        const hook = hooks.define('panel.started', 'notify');
        const tap = (plugin: string, order: object): unknown =>
            hooks.tap(owner(plugin), 'panel.started', () => void seen.push(plugin), order);
        tap('a', { before: ['nobody'], stage: 5 });
        tap('b', {});
        tap('c', { before: ['b'] });
        tap('d', { after: ['e'] });
        tap('e', { after: ['d'] });
        tap('f', { stage: -1 });
        await hook.run({});
        expect(seen.indexOf('f')).to.equal(0);
        expect(seen.indexOf('c')).to.be.below(seen.indexOf('b'));
        expect(seen.at(-1)).to.equal('a');
        expect(seen).to.have.length(6);
        expect(hooks.taps().map((each) => each.plugin)).to.equal(seen);
    });

    it('releases a plugin at once, also for calls under way', async () => {
        const seen: string[] = [];
        let open: () => void = () => undefined;
        const hook = hooks.define('host.guard', 'guard');
        hooks.tap(
            owner('a'),
            'host.guard',
            () =>
                new Promise((resolve) => {
                    open = () => resolve({ refuse: 'too late' });
                })
        );
        hooks.tap(owner('b'), 'host.guard', () => void seen.push('b'));
        const running = hook.run(entry);
        expect(hooks.release('a')).to.equal(['host.guard']);
        expect(hooks.release('b')).to.equal(['host.guard']);
        open();
        await running;
        expect(seen).to.equal([]);
        expect([hook.used, hooks.taps(), hooks.release('a')]).to.equal([false, [], []]);
    });

    it('publishes a name once, and keeps taps that came before it', async () => {
        const seen: number[] = [];
        hooks.tap(owner('a'), 'engine.applied', ({ revision }) => void seen.push(revision));
        const hook = hooks.define('engine.applied', 'notify');
        await hook.run({ revision: 4, reloaded: false });
        expect(seen).to.equal([4]);
        expect(() => hooks.define('engine.applied', 'notify')).to.throw(TypeError);
    });

    it('asks each tap once and in order, whatever those before it did: answered, threw, failed, hung or went away', async () => {
        const seen: string[] = [];
        const hook = hooks.define('panel.started', 'notify', { timeoutSeconds: 0.05 });
        const tap = (plugin: string, act: () => unknown): unknown =>
            hooks.tap(owner(plugin), 'panel.started', () => {
                seen.push(plugin);
                return act() as never; // as JavaScript may
            });
        tap('a', () => Promise.resolve());
        tap('b', () => Promise.resolve({ an: 'answer' }));
        tap('c', () => {
            throw new Error('thrown');
        });
        tap('d', () => undefined);
        tap('e', () => Promise.reject(new Error('failed')));
        tap('f', () => new Promise(() => undefined));
        tap('g', () => Promise.resolve(() => 'no data'));
        tap('h', () => hooks.release('i'));
        tap('i', () => undefined);
        tap('j', () => Promise.resolve());
        await Promise.all([hook.run({}), hook.run({})]);
        expect(seen.filter((_name, index) => index % 2 === 0).toSorted()).to.equal([
            'a',
            'b',
            'c',
            'd',
            'e',
            'f',
            'g',
            'h',
            'j'
        ]);
        expect(seen.toSorted().join('')).to.equal('aabbccddeeffgghhjj');
        expect(failures.map(({ plugin }) => plugin).toSorted()).to.equal(['c', 'c', 'e', 'e', 'f', 'f']);
    });

    it('asks each tap once, also when the promise of one calls back twice or has a faulty `then`', async () => {
        const seen: string[] = [];
        const hook = hooks.define('panel.started', 'notify');
        const twice = { then: (good: (value: undefined) => void) => (good(undefined), good(undefined)) };
        hooks.tap(owner('a'), 'panel.started', () => Object.assign(Promise.resolve(), twice) as never); // as JavaScript may
        hooks.tap(owner('b'), 'panel.started', () => twice as never); // as JavaScript may
        hooks.tap(owner('c'), 'panel.started', async () => void seen.push('c'));
        hooks.tap(owner('d'), 'panel.started', () => {
            seen.push('d');
            return Object.defineProperty({}, 'then', {
                get: () => {
                    throw new Error('faulty');
                }
            }) as never; // as JavaScript may
        });
        await hook.run({});
        expect(seen).to.equal(['c', 'd']);
        expect(failures.map(({ plugin }) => plugin)).to.equal(['d']);
    });

    it('goes on in the context of its caller, also after a tap that was given up', async () => {
        const context = new AsyncLocalStorage<string>();
        const seen: unknown[] = [];
        const hook = hooks.define('panel.started', 'notify', { timeoutSeconds: 0.05 });
        hooks.tap(owner('a'), 'panel.started', () => new Promise(() => undefined));
        hooks.tap(owner('b'), 'panel.started', async () => void seen.push(context.getStore()));
        await Promise.all(['one', 'two'].map((name) => context.run(name, () => hook.run({}))));
        expect(seen.toSorted()).to.equal(['one', 'two']);
    });

    it('takes a guard that fails with nothing for one that failed, and one that answers nothing of use for one that lets pass', async () => {
        const hook = hooks.define('host.guard', 'guard');
        const asked: string[] = [];
        hooks.tap(owner('a'), 'host.guard', async () => ({ refuse: 5 }) as never); // wrong on purpose
        hooks.tap(owner('b'), 'host.guard', async () => null as never); // wrong on purpose
        hooks.tap(owner('c'), 'host.guard', () => void asked.push('c'));
        await hook.run(entry);
        expect(asked).to.equal(['c']);
        hooks.tap(owner('d'), 'host.guard', () => Promise.reject(undefined));
        await expect(hook.run(entry)).to.reject(/The plugin d failed/);
    });

    it('keeps a tap within its time however long those before it took', async () => {
        const hook = hooks.define('panel.started', 'notify', { timeoutSeconds: 0.2 });
        const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 120));
        ['a', 'b', 'c'].forEach((plugin) => hooks.tap(owner(plugin), 'panel.started', pause));
        await hook.run({});
        expect(failures).to.equal([]);
    });
});
