import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { GitServer } from '../../deploy/support/git-server.ts';
import { type Part, png } from '../publisher.ts';
import { AppstoreRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const config = (more: Part = {}): string =>
    JSON.stringify({
        id: 'notes',
        name: 'Notes',
        version: '1.2.3',
        tipi_version: 4,
        port: 8080,
        categories: ['utilities'],
        short_desc: 'Keeps notes',
        website: 'https://notes.example',
        supported_architectures: ['amd64', 'arm64'],
        form_fields: [
            { type: 'random', label: 'Key', min: 16, env_variable: 'NOTES_KEY', encoding: 'hex' },
            { type: 'text', label: 'Title', default: 'Mine', env_variable: 'NOTES_TITLE', required: true }
        ],
        ...more
    });
const dynamic = (more: Part = {}): string =>
    JSON.stringify({
        services: [
            {
                name: 'notes',
                image: 'ghcr.io/example/notes:1.2.3',
                isMain: true,
                internalPort: 3000,
                environment: { KEY: '${NOTES_KEY}', HOST: '${APP_HOST}', ZONE: '${TZ}' },
                volumes: [
                    { hostPath: '${APP_DATA_DIR}/data', containerPath: '/data' },
                    { hostPath: '${APP_DATA_DIR}/conf', containerPath: '/conf', readOnly: true }
                ],
                dependsOn: ['db'],
                ...more
            },
            {
                name: 'db',
                image: 'postgres:16',
                environment: [{ key: 'POSTGRES_PASSWORD', value: '${NOTES_KEY}' }]
            }
        ]
    });
const casaos = `
name: photos
services:
  photos:
    image: example/photos:2.1
    container_name: photos
    network_mode: bridge
    environment: { PUID: $PUID, TZ: $TZ }
    ports: [{ target: 80, published: "8123", protocol: tcp }, { target: 53, published: "53", protocol: udp }]
    volumes: [{ type: bind, source: /DATA/AppData/$AppID/config, target: /config }]
    x-casaos: { envs: [] }
x-casaos:
  architectures: [amd64]
  main: photos
  category: Media
  port_map: "8123"
  index: /web
  title: { en_us: Photos, de_de: Fotos }
  tagline: { en_us: Shows photos }
  description: { en_us: "It **shows** photos." }
`;

let rig: AppstoreRig;
let server: GitServer;
let folder: string;

describe('Repositories of other panels', { timeout: 60_000 }, () => {
    before(async () => {
        folder = mkdtempSync(join(tmpdir(), 'repos-'));
        server = new GitServer(folder);
        await server.start();
        rig = await AppstoreRig.start();
        server.create('tipi', {
            'apps/notes/config.json': config(),
            'apps/notes/docker-compose.json': dynamic(),
            'apps/notes/metadata/logo.jpg': png,
            // What is called an image is not asked, and SVG is none.
            'apps/host/metadata/logo.png': '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>',
            'apps/notes/metadata/description.md': '# Notes\n\nThey are *kept*.',
            'apps/host/config.json': config({ id: 'host', name: 'Host' }),
            'apps/host/docker-compose.json': dynamic({
                volumes: [{ hostPath: '/etc', containerPath: '/etc' }]
            }),
            'apps/odd/config.json': '{ "id": ',
            'apps/odd/docker-compose.json': '{}',
            'apps/linked/config.json': { link: '/etc/passwd' },
            'README.md': 'x'
        });
        server.create('casa', {
            'Apps/Photos/icon.png': png,
            'Apps/Plain/icon.png': Buffer.concat([png, Buffer.alloc(300_000)]),
            'Apps/Photos/docker-compose.yml': casaos,
            'Apps/Plain/docker-compose.yml': 'services: {}'
        });
    });

    after(async () => {
        await rig?.close();
        await server?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    const add = (name: string, kind: string, more: Part = {}) =>
        rig.post('/sources', {
            name,
            kind,
            url: server.url(kind === 'runtipi' ? 'tipi' : 'casa'),
            acceptUnsigned: true,
            ...more
        });

    it('of Runtipi are taken over app by app, at a commit, and what cannot be is named', async () => {
        expect((await add('tipi', 'runtipi', { branch: 'main' })).status).to.equal(201);
        expect((await rig.sync('tipi')).added).to.equal(3);
        const { data: source } = await rig.get('/sources/tipi');
        expect([source.signed, source.keyId, source.commit.length, source.state]).to.equal([
            false,
            null,
            40,
            'ready'
        ]);
        const { data: apps } = await rig.get('/apps?source=tipi');
        expect(apps.map(({ id, available }: Part) => [id, available])).to.equal([
            ['host', false],
            ['notes', true],
            ['odd', false]
        ]);
        expect(apps[0].why).to.contain('/etc');
        const { data: notes } = await rig.get('/apps/tipi/notes');
        expect(notes.description.html).to.contain('<em>kept</em>');
        expect(notes).to.include({ title: 'Notes', version: '1.2.3', signed: false });
        expect(notes.form.map(({ name, type, required }: Part) => [name, type, required])).to.equal([
            ['NOTES_KEY', 'random', false],
            ['NOTES_TITLE', 'text', true]
        ]);
        const icon = await rig.host.as('viewer').fetch('GET', '/apps/tipi/notes/icon');
        expect(icon.headers.get('content-type')).to.equal('image/png');
        expect(Buffer.from(await icon.arrayBuffer()).equals(png)).to.equal(true);
        expect((await rig.get('/apps/tipi/host/icon')).code).to.equal(40400);
        // The second time only the head of the branch is asked.
        server.asked.length = 0;
        expect(await rig.sync('tipi')).to.equal({ added: 0, changed: 0, removed: 0 });
        expect(
            server.asked.some(({ path }) => path.endsWith('git-upload-pack') && server.asked.length > 2)
        ).to.equal(false);
        server.commit('tipi', { 'apps/notes/config.json': config({ version: '1.3.0' }) });
        expect((await rig.sync('tipi')).changed).to.equal(1);
        expect(readdirSync(rig.host.dataDir).filter((name) => name.startsWith('git-'))).to.equal([]);
    });

    it('of CasaOS come with their texts, and their folders become volumes', async () => {
        await add('casa', 'casaos');
        await rig.sync('casa');
        const { data: apps } = await rig.get('/apps?source=casa&lang=de');
        expect(apps.map(({ id, title, available }: Part) => [id, title, available])).to.equal([
            ['photos', 'Fotos', true],
            ['plain', 'Plain', false]
        ]);
        expect((await rig.get('/apps?source=casa&category=media')).data.length).to.equal(1);
        expect((await rig.get('/apps/casa/photos/icon')).status).to.equal(200);
        expect((await rig.get('/apps/casa/plain/icon')).code).to.equal(40400);
    });

    it('are not installed without a word, neither of the source nor of the install', async () => {
        await add('strict', 'casaos', { acceptUnsigned: false });
        await rig.sync('strict');
        expect(
            (await rig.post('/plan', { source: 'strict', app: 'photos', acknowledgeUnsigned: true })).code
        ).to.equal(40952);
        expect((await rig.post('/plan', { source: 'casa', app: 'photos' })).code).to.equal(40952);
        expect((await add('keyed', 'casaos', { publicKey: 'x' })).code).to.equal(40001);
        expect((await add('dashed', 'casaos', { branch: '--upload-pack=x' })).code).to.equal(40001);
    });

    it('fail with a reason, and git goes nowhere else', async () => {
        await add('gone', 'casaos', { url: server.url('none') });
        expect((await rig.run('/sources/gone/sync')).error?.code).to.equal(50250);
        await add('nobranch', 'casaos', { branch: 'nope' });
        expect((await rig.run('/sources/nobranch/sync')).error?.message).to.contain('refs/heads/nope');
        await add('moved', 'casaos', { url: server.url('moved') });
        server.intercept = ({ url }, response) => {
            if (url?.startsWith('/moved.git') !== true) {
                return false;
            }
            response.writeHead(302, { location: server.url('casa') }).end();
            return true;
        };
        expect((await rig.run('/sources/moved/sync')).error?.code).to.equal(50250);
        server.intercept = () => false;
        rig.host.programs.missing('git');
        expect((await rig.run('/sources/casa/sync')).error?.code).to.equal(50302);
    });

    it('are imported by hand, file by file', async () => {
        const made = await rig.post('/import', {
            kind: 'runtipi',
            name: 'notes',
            files: { 'config.json': config(), 'docker-compose.json': dynamic() }
        });
        expect([made.status, made.data.key, made.data.warnings]).to.equal([201, 'local/notes', []]);
        const unsupported = async (files: Part, kind: string, key: string): Promise<void> => {
            const { code, data } = await rig.post('/import', { kind, name: 'x', files });
            expect([code, data.keys.join()]).to.equal([42256, key]);
        };
        await unsupported({}, 'compose', 'docker-compose.yml');
        await unsupported({ 'docker-compose.yml': 'a: &a [*a]' }, 'compose', 'ports');
        await unsupported(
            { 'docker-compose.yml': 'services: { a: { image: !!js/function "x" } }' },
            'compose',
            'docker-compose.yml'
        );
        await unsupported(
            { 'docker-compose.yml': 'services: { a: {}, a: {} }' },
            'compose',
            'docker-compose.yml'
        );
        await unsupported({ 'docker-compose.yml': 'services: {}' }, 'casaos', 'x-casaos');
        await unsupported(
            { 'docker-compose.yml': casaos.replace('/DATA/AppData/$AppID/config', '/var/run/docker.sock') },
            'casaos',
            'volumes: /var/run/docker.sock'
        );
        await unsupported(
            { 'config.json': config(), 'docker-compose.json': dynamic({ hooks: 1 }) },
            'runtipi',
            'hooks'
        );
        expect(
            (await rig.ask('POST', '/import', { kind: 'compose', name: 'x', files: {} }, 'operator')).status
        ).to.equal(403);
        // What was imported has no source to ask.
        expect((await rig.post('/sources/local/sync')).code).to.equal(40400);
    });
});
