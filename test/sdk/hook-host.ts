import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createHookHost, isFailure, type HookHost, type TapFailure } from '@portico/sdk';

export const lab = Lab.script();
const { beforeEach, describe, it } = lab;

const owner = (plugin: string) => ({ plugin, version: '1.0.0' });
const entry = { action: 'create', before: null, after: { domain: 'a.example' } } as const;

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
        expect(failures.map(({ plugin, hook: name, error }) => [plugin, name, (error as Error).message])).to.equal([['a', 'panel.started', 'broken']]);
    });

    it('refuses in the name of the guard that refused, and of one that failed', async () => {
        const hook = hooks.define('host.guard', 'guard');
        const untap = hooks.tap(owner('a'), 'host.guard', () => ({ refuse: 'Not on a Friday' }));
        const refused = await hook.run(entry).catch((error: unknown) => error);
        expect(isFailure(refused) && [refused.code, refused.message, refused.data]).to.equal([40920, 'Not on a Friday', { plugin: 'a', hook: 'host.guard' }]);
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
        hooks.tap(owner('b'), 'host.beforeSave', (value) => ({ ...value, host: { ...value.host, tags: ['b'] } }));
        hooks.tap(owner('c'), 'host.beforeSave', () => undefined);
        const given = { before: null, host: { domain: 'a.example' } };
        expect(await hook.run(given)).to.equal({ before: null, host: { domain: 'a.example', tags: ['b'] } });
        expect(given).to.equal({ before: null, host: { domain: 'a.example' } });
        expect(failures.map((failure) => failure.plugin)).to.equal(['a']);
    });

    it('ends a tap that hangs, tells it, and goes on', async () => {
        let told = false;
        const hook = hooks.define('panel.started', 'notify', { timeoutSeconds: 0.02 });
        hooks.tap(owner('a'), 'panel.started', (_payload, { signal }) => new Promise(() => signal.addEventListener('abort', () => {
            told = true;
        })));
        await hook.run({});
        expect([told, failures[0]?.plugin]).to.equal([true, 'a']);
    });

    it('orders by stage and wish; unknown names and circles change nothing', async () => {
        const seen: string[] = [];
        const hook = hooks.define('panel.started', 'notify');
        const tap = (plugin: string, order: object): unknown => hooks.tap(owner(plugin), 'panel.started', () => void seen.push(plugin), order);
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
        hooks.tap(owner('a'), 'host.guard', () => new Promise((resolve) => {
            open = () => resolve({ refuse: 'too late' });
        }));
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
});
