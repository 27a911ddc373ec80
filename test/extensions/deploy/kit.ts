/** What needs no machine: previews by number and by time, exports and imports, and shared folders in backups. The repository cannot be reached. */
import {
    cpSync,
    lstatSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createTestHost, type TestHost } from '@portico/testing';

import { defineDeploy } from '../../../extensions/deploy/src/index.ts';
import { until } from '../../support/until.ts';
import { pullOf, signed } from './forges/deliveries.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
type Data = any;
const extension = new URL('../../../extensions/deploy/', import.meta.url);
const maxBytes = 8 * 2 ** 20;
const source = { url: 'https://git.example/acme/shop.git' };
const hours = (count: number) => ({ hours: count });
let top: string;
let hosts: TestHost[];

/** A panel with the plugin, whose folder is one of the test's. */
async function start(name: string): Promise<TestHost> {
    const folder = join(top, name);
    mkdirSync(folder);
    const manifest = JSON.parse(readFileSync(new URL('package.json', extension), 'utf8'));
    manifest.portico.capabilities.files = [folder];
    mkdirSync(join(top, `package-${name}`));
    const file = join(top, `package-${name}`, 'package.json');
    writeFileSync(file, JSON.stringify(manifest));
    const host = await createTestHost(defineDeploy({ folder, isRoot: () => true }), {
        package: pathToFileURL(file),
        machine: 'real',
        settings: { user: 'nobody' }
    });
    hosts.push(host);
    return host;
}

const ask = async (host: TestHost, method: string, path: string, body?: object): Promise<Data> => {
    const { data, status, text } = await host.as('admin').ask<Data>(method, path, body);
    if (status >= 300) {
        throw new Error(`${method} ${path}: ${text}`);
    }
    return data;
};

/** A project with a hook, and what sends it pull requests. */
async function project(host: TestHost, previews: object) {
    const { id } = await ask(host, 'POST', '/projects', { name: 'shop', source, previews });
    const hook = await ask(host, 'POST', `/projects/${id}/hook`);
    const path = (hook.url as string).replace('/api/plugins/deploy', '');
    const pull = async (number: number, fork: boolean, more: object = {}): Promise<Data> => {
        const commit = number.toString(16).padStart(40, '0');
        const [event, body] = pullOf('gitea', { number, commit, action: 'opened', fork, ...more });
        const headers = { 'content-type': 'application/json', ...signed('gitea', event, body, hook.secret) };
        const { data } = await host.as('anonymous').ask<Data>('POST', path, body, { headers });
        return data.preview;
    };
    const states = async (): Promise<readonly [number, string][]> =>
        (await ask(host, 'GET', `/projects/${id}/previews`)).map(({ number, state }: Data) => [
            number,
            state
        ]);
    return { id: id as number, pull, states };
}

describe('Deployments without a machine', { timeout: 60_000 }, () => {
    beforeEach(() => {
        top = mkdtempSync(join(tmpdir(), 'portico-deploy-kit-'));
        hosts = [];
    });

    afterEach(async () => {
        await Promise.all(hosts.map((host) => host.close()));
        rmSync(top, { recursive: true, force: true });
    });

    it('lets the oldest preview make place for a new one, and a pull request that is moved stay', async () => {
        const host = await start('one');
        const { id: shop, pull, states } = await project(host, { domain: 'pr-{number}.shop.test', max: 2 });
        await pull(1, false);
        await pull(2, false);
        await pull(1, false, { action: 'pushed', commit: 'a'.repeat(40) });
        await pull(3, false);
        // Its repository cannot be reached, which people are told.
        const failures = () => host.notifications.filter(({ event }) => event.endsWith('failed'));
        await until(() => failures().length > 0, 'the notice');
        expect(failures()[0]).to.include({ severity: 'error', text: 'FETCH_FAILED' });
        const found = new Map(await states());
        expect(found.get(2)).to.equal('closed');
        expect([found.get(1), found.get(3)]).to.not.include('closed');
        await pull(4, true);
        expect(new Map(await states()).get(4)).to.equal('awaiting-approval');
        expect([...(await states())].filter(([, state]) => state === 'closed')).to.equal([[2, 'closed']]);
        const waits = host.notifications.filter(({ event }) => event.endsWith('preview-waiting'));
        expect(waits.map(({ title }) => title)).to.equal([
            'shop: pull request 4 of a fork waits for approval'
        ]);
        // By hand, too: it is over, and a new head makes it again.
        const { id } = (await ask(host, 'GET', `/projects/${shop}/previews`)).find(
            ({ number }: Data) => number === 4
        );
        expect((await host.as('operator').ask('DELETE', `/previews/${id}`)).status).to.equal(403);
        expect((await ask(host, 'DELETE', `/previews/${id}`)).state).to.equal('closed');
        expect((await ask(host, 'GET', `/previews/${id}`)).state).to.equal('closed');
        await pull(4, true, { action: 'pushed', commit: 'b'.repeat(40) });
        expect(new Map(await states()).get(4)).to.equal('awaiting-approval');
    });

    it('ends a preview that got no commit in its time, and no other', async () => {
        const host = await start('one');
        await host.clock.set(Date.now());
        const { pull, states } = await project(host, { domain: 'pr-{number}.shop.test', expireDays: 2 });
        await pull(1, true);
        await pull(2, false);
        await host.clock.set(Date.now() + 47 * 3_600_000);
        expect((await states()).some(([, state]) => state === 'closed')).to.be.false();
        await host.clock.set(Date.now() + 49 * 3_600_000);
        await host.clock.advance(hours(1));
        expect(await states()).to.equal([
            [2, 'closed'],
            [1, 'closed']
        ]);
        // A new head makes it again.
        await pull(1, true, { action: 'pushed', commit: 'a'.repeat(40) });
        expect(new Map(await states()).get(1)).to.equal('awaiting-approval');
    });

    it('takes nothing of a group of variables that is refused', async () => {
        const host = await start('one');
        const made = await ask(host, 'POST', '/env-groups', { name: 'a', vars: [{ name: 'A', value: '1' }] });
        await ask(host, 'POST', '/env-groups', { name: 'b', vars: [] });
        const admin = host.as('admin');
        const bad = { vars: [{ name: 'PATH', value: '/evil' }] };
        expect((await admin.ask('POST', '/env-groups', { name: 'c', ...bad })).code).to.equal(40001);
        expect((await admin.ask('PUT', `/env-groups/${made.id}`, { name: 'd', ...bad })).code).to.equal(
            40001
        );
        const taken = { name: 'b', vars: [{ name: 'A', value: '2' }] };
        expect((await admin.ask('PUT', `/env-groups/${made.id}`, taken)).code).to.equal(40900);
        const groups = (await ask(host, 'GET', '/env-groups')) as Data[];
        expect(groups.map(({ name, version }) => [name, version])).to.equal([
            ['a', 1],
            ['b', 1]
        ]);
        expect(groups[0].vars[0].value).to.equal('1');
    });

    it('says of each refusal what is wrong, and what to do', async () => {
        const host = await start('one');
        const admin = host.as('admin');
        const { id } = await ask(host, 'POST', '/projects', { name: 'shop', source, enabled: false });
        const group = await ask(host, 'POST', '/env-groups', { name: 'a', vars: [] });
        await ask(host, 'PUT', `/projects/${id}`, { envGroups: [group.id] });
        const said = async (
            method: string,
            path: string,
            body?: object
        ): Promise<readonly [number | null, string]> => {
            const { code, text } = await admin.ask(method, path, body);
            return [code, JSON.parse(text).message];
        };
        expect(await said('DELETE', `/env-groups/${group.id}`)).to.equal([
            40901,
            'Projects have this group: shop'
        ]);
        expect(await said('POST', `/projects/${id}/deployments`, {})).to.equal([
            40901,
            'The project is not enabled: enable it first'
        ]);
        expect(await said('POST', `/projects/${id}/rollback`, {})).to.equal([
            40951,
            'No release that served before is kept'
        ]);
        const [, url] = await said('POST', '/projects', { name: 'x', source: { url: 'file:///etc' } });
        expect(url).to.contain('refused');
    });

    it('gives projects, connections, groups and crons to an export, and takes them on another machine, twice as once', async () => {
        const [host, other] = [await start('one'), await start('two')];
        const connection = await ask(host, 'POST', '/connections', {
            ...{ name: 'forge', kind: 'token', host: 'git.example', username: 'ada', token: 'token-of-ada' }
        });
        const group = await ask(host, 'POST', '/env-groups', {
            name: 'both',
            vars: [{ name: 'A', value: '1' }]
        });
        const made = await ask(host, 'POST', '/projects', {
            ...{
                name: 'shop',
                source: { ...source, connection: connection.id },
                envGroups: [group.id],
                keep: 3
            }
        });
        const vars = [{ name: 'SECRET', value: 'swordfish', secret: true }];
        await ask(host, 'PUT', `/projects/${made.id}/env`, { vars });
        const cron = { name: 'nightly', schedule: '0 3 * * *', command: ['true'] };
        await ask(host, 'POST', `/projects/${made.id}/crons`, cron);
        const [given] = await host.hooks.run('export.collect', { maxBytes });
        const items = given?.ok === true ? JSON.parse(JSON.stringify(given.result)) : null;
        expect(JSON.stringify(items)).to.contain('swordfish').and.to.contain('token-of-ada');

        await ask(other, 'POST', '/projects', { name: 'away', source });
        const restore = async (mode: 'merge' | 'replace', what: Data = items) => {
            const [outcome] = await other.hooks.run('import.restore', {
                version: '1.0.0',
                mode,
                items: what
            });
            return outcome?.ok === true ? outcome.result : outcome;
        };
        expect(await restore('merge')).to.equal([{ item: 'projects', ok: true }]);
        expect(await restore('merge')).to.equal([{ item: 'projects', ok: true }]);
        const names = async () => (await ask(other, 'GET', '/projects')).map(({ name }: Data) => name);
        expect(await names()).to.equal(['away', 'shop']);
        expect(await restore('replace')).to.equal([{ item: 'projects', ok: true }]);
        expect(await names()).to.equal(['shop']);
        const [shop] = await ask(other, 'GET', '/projects');
        const [restored] = await ask(other, 'GET', '/connections');
        expect(shop).to.include({ keep: 3, state: 'empty' });
        expect(shop.source.connection).to.equal(restored.id);
        expect(restored).to.include({ name: 'forge', token: { set: true } });
        expect((await ask(other, 'GET', '/env-groups')).map(({ id }: Data) => id)).to.equal(shop.envGroups);
        expect((await ask(other, 'GET', `/projects/${shop.id}/env`)).vars[0]).to.include({
            ...{ name: 'SECRET', secret: true, value: null, set: true }
        });
        expect((await ask(other, 'GET', `/projects/${shop.id}/crons`))[0]).to.include(cron);
        // What cannot be restored is named, and the rest is.
        const broken = structuredClone(items);
        broken[0].data.projects.push({
            ...broken[0].data.projects[0],
            project: { name: 'bad', source: { url: 'file:///etc' } }
        });
        expect(((await restore('merge', broken)) as Data)[0]).to.include({ item: 'projects', ok: false });
        expect(await restore('merge', [{ name: 'projects', data: { projects: 3 } }])).to.have.length(1);
        expect(await names()).to.equal(['shop']);
    });

    it('gives shared folders to backups, and brings them back as the account has them', async () => {
        const host = await start('one');
        const { id } = await ask(host, 'POST', '/projects', { name: 'shop', source });
        await ask(host, 'POST', '/projects', { name: 'bare', source });
        const shared = join(top, 'one', `projects/${id}/shared`);
        const data = join(shared, encodeURIComponent('var/data'));
        mkdirSync(join(data, 'deep'), { recursive: true });
        writeFileSync(join(data, 'deep/file'), 'kept', { mode: 0o600 });
        symlinkSync('deep/file', join(data, 'link'));
        symlinkSync('/etc/passwd', join(data, 'out'));
        const [listed] = await host.hooks.run('backup.list', {});
        const entries = (listed?.ok === true ? listed.result : []) as Data[];
        expect(entries.map(({ name }) => name)).to.equal(['shared:shop']);

        const lent = join(top, 'lent');
        mkdirSync(lent);
        const [collected] = await host.hooks.run('backup.collect', { folder: lent, only: ['shared:shop'] });
        const items = (collected?.ok === true ? collected.result : []) as Data[];
        expect(items[0].path).to.equal(shared);
        // As a collector does: it takes the folder from there, and lends what it took.
        cpSync(shared, join(lent, 'taken'), { recursive: true, verbatimSymlinks: true });
        writeFileSync(join(data, 'deep/file'), 'changed');
        writeFileSync(join(data, 'new'), 'x');
        const restore = async (name: string) => {
            const given = [{ name, title: name, path: 'taken' }];
            const [outcome] = await host.hooks.run('backup.restore', {
                folder: lent,
                version: '1.0.0',
                items: given
            });
            return (outcome?.ok === true ? outcome.result : outcome) as Data;
        };
        const [result] = await restore('shared:shop');
        expect(result, JSON.stringify(result)).to.include({ item: 'shared:shop', ok: true });
        expect(result.message).to.contain('1 links');
        expect(readdirSync(data).sort()).to.equal(['deep', 'link']);
        expect(readFileSync(join(data, 'deep/file'), 'utf8')).to.equal('kept');
        expect([statSync(join(data, 'deep/file')).mode & 0o777, readlinkSync(join(data, 'link'))]).to.equal([
            0o600,
            'deep/file'
        ]);
        expect(lstatSync(join(data, 'deep')).uid).to.equal(65_534);
        expect((await restore('shared:gone'))[0].ok).to.be.false();
    });
});
