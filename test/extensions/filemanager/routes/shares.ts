import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig, rootPath } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const main = { name: 'main', path: rootPath, roles: ['operator'] };

describe('links of filemanager for people without an account', () => {
    let files: FilesRig;

    beforeEach(async () => {
        files = await createFilesRig({ settings: { shares: true, shareDays: 10 } });
        writeFileSync(files.at('a.txt'), '0123456789');
    });

    afterEach(() => files.close());

    const share = async (path = 'a.txt', more: object = {}): Promise<{ id: number; url: string }> => {
        const { status, data } = await files.post('/shares', { root: 'main', path, ...more });
        expect(status).to.equal(201);
        return data;
    };
    const follow = (url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
        files.host.as('anonymous').fetch(method, url, undefined, { headers });
    const codeOf = async (url: string): Promise<number> =>
        ((await (await follow(url)).json()) as { code: number }).code;
    const downloads = async (): Promise<number[]> =>
        (await files.get('/shares')).data.map((one: { downloads: number }) => one.downloads);

    it('give a file as an attachment, whatever it is, and count and record each download', async () => {
        writeFileSync(files.at('page.html'), '<script>1</script>');
        const { url } = await share('page.html');
        const answer = await follow(url);
        expect([answer.status, await answer.text()]).to.equal([200, '<script>1</script>']);
        expect(answer.headers.get('content-disposition') ?? '').to.match(/^attachment/);
        expect(answer.headers.get('content-security-policy')).to.include('sandbox');
        const part = await follow(url, { range: 'bytes=0-6' });
        expect([part.status, await part.text()]).to.equal([206, '<script']);
        const { status } = await follow(url, {}, 'HEAD');
        expect([status, await downloads()]).to.equal([200, [2]]);
        const recorded = files.host.audit.filter(({ action }) => action === 'download');
        expect(recorded.map(({ resourceId, after }) => [resourceId, Object.keys(after as object)])).to.equal([
            ['main:page.html', ['share', 'ip']],
            ['main:page.html', ['share', 'ip']]
        ]);
        expect(await files.held()).to.equal([]);
    });

    it('give a folder as a zip, without links and private folders', async () => {
        mkdirSync(files.at('site'));
        writeFileSync(files.at('site/index.html'), 'hello');
        writeFileSync(join(files.outside, 'key'), 'the key');
        symlinkSync(join(files.outside, 'key'), files.at('site/key'));
        const { url } = await share('site');
        const answer = await follow(url);
        expect([answer.headers.get('content-type'), answer.headers.get('content-disposition')]).to.equal([
            'application/zip',
            'attachment; filename="site.zip"; filename*=UTF-8\'\'site.zip'
        ]);
        const zip = Buffer.from(await answer.arrayBuffer());
        expect([zip.includes('site/index.html'), zip.includes('key')]).to.equal([true, false]);
    });

    it('have one answer when they are unknown, expired, used up, revoked, or lead to nothing', async () => {
        const base = '/api/plugins/filemanager/s/';
        for (const token of ['x', 'A'.repeat(43), "' or 1=1 --", '../roots', '%2e%2e', '']) {
            const { status } = await follow(base + encodeURIComponent(token));
            expect([404, 400]).to.include(status);
        }
        expect(await codeOf(`${base}${'A'.repeat(43)}`)).to.equal(40450);
        const once = await share('a.txt', { maxDownloads: 1 });
        expect((await follow(once.url)).status).to.equal(200);
        expect(await codeOf(once.url)).to.equal(40450);
        const revoked = await share();
        expect((await files.remove(`/shares/${revoked.id}`, {})).code).to.equal(0);
        expect(await codeOf(revoked.url)).to.equal(40450);
        const gone = await share();
        rmSync(files.at('a.txt'));
        expect(await codeOf(gone.url)).to.equal(40450);
        symlinkSync('/etc/passwd', files.at('a.txt'));
        expect(await codeOf(gone.url)).to.equal(40450);
    });

    it('end at their time, and then leave the list', async () => {
        const { url } = await share('a.txt', { expiresAt: new Date(Date.now() + 3_600_000).toISOString() });
        expect((await follow(url)).status).to.equal(200);
        await files.host.db.write((em) => em.execute('update shares set expires = ?', [Date.now()]));
        expect([await codeOf(url), await downloads()]).to.equal([40450, []]);
        await files.host.schedules.run('expire');
        expect(await files.host.db.read((em) => em.execute('select id from shares'))).to.equal([]);
        expect(files.host.mandates.list().map(({ ended }) => ended)).to.equal([true]);
    });

    it('are never downloaded more often than they may be, also at once and by ranges', async () => {
        const { url } = await share('a.txt', { maxDownloads: 3 });
        const answers = await Promise.all(
            Array.from({ length: 12 }, async (_, at) => {
                const answer = await follow(url, at % 2 === 0 ? { range: `bytes=${at % 10}-` } : {});
                await answer.arrayBuffer();
                return answer.status;
            })
        );
        expect(answers.filter((status) => status < 300)).to.have.length(3);
        expect(await downloads()).to.equal([3]);
    });

    it('end with what their maker may read: the mandate, the role, the root, the setting', async () => {
        const { url } = await share();
        await files.host.setSettings({ roots: [{ ...main, path: '/outside' }] });
        writeFileSync(join(files.outside, 'a.txt'), 'of another folder');
        expect(await codeOf(url)).to.equal(40450);
        await files.host.setSettings({ roots: [] });
        expect(await codeOf(url)).to.equal(40450);
        await files.host.setSettings({ roots: [main], shares: false });
        expect(await codeOf(url)).to.equal(40450);
        expect((await files.post('/shares', { root: 'main', path: 'a.txt' })).code).to.equal(40353);
        await files.host.setSettings({ shares: true });
        expect((await follow(url)).status).to.equal(200);
        files.host.mandates.revoke(1);
        expect(await codeOf(url)).to.equal(40450);
    });

    it('keep their token nowhere but in the one answer', async () => {
        const { url } = await share();
        const token = url.slice(url.lastIndexOf('/') + 1);
        expect(Buffer.from(token, 'base64url')).to.have.length(32);
        await (await follow(url)).arrayBuffer();
        expect(JSON.stringify([files.host.audit, files.host.log, await files.get('/shares')])).not.to.include(
            token
        );
        const rows = await files.host.db.read((em) => em.execute('select * from shares'));
        expect(JSON.stringify(rows)).not.to.include(token);
    });

    it('are made by who may, from a fresh session, of what there is, and for so many days', async () => {
        const payload = { root: 'main', path: 'a.txt' };
        expect((await files.post('/shares', payload, { role: 'operator' })).code).to.equal(40300);
        const tired = files.host.as({
            username: 'tired',
            role: 'admin',
            permissions: ['share'],
            fresh: false
        });
        expect((await tired.post('/shares', payload)).code).to.equal(40301);
        const code = async (more: object) => (await files.post('/shares', { ...payload, ...more })).code;
        expect(await code({ path: 'none' })).to.equal(40400);
        expect(await code({ path: '.portico' })).to.equal(40400);
        expect(await code({ path: '../outside' })).to.equal(40350);
        symlinkSync('a.txt', files.at('link'));
        expect(await code({ path: 'link' })).to.equal(40950);
        expect(await code({ maxDownloads: 0 })).to.equal(40001);
        const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString();
        expect(await code({ expiresAt: days(11) })).to.equal(40001);
        expect(await code({ expiresAt: days(-1) })).to.equal(40001);
        expect(files.host.mandates.list()).to.equal([]);
        const made = (await files.post('/shares', payload)).data;
        expect(new Date(made.expiresAt).getTime() - new Date(made.createdAt).getTime()).to.equal(
            10 * 86_400_000
        );
        expect(readFileSync(files.at('a.txt'), 'utf8')).to.equal('0123456789');
        expect(readdirSync(files.folder).sort()).to.equal(['a.txt', 'link']);
    });
});
