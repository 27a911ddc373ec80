import { chmodSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    createReadable,
    fileFault,
    folderFault,
    resolvePath
} from '../../../../../core/src/features/hosts/rules/paths.ts';
import { foreignWriter } from '../../../../../registry/src/index.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let folder = '';
let server: Server;
const inside = (path: string): string => join(folder, path);

before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portico-paths-'));
    for (const path of ['data/keys', 'engine', 'www/site']) {
        mkdirSync(inside(path), { recursive: true });
    }
    symlinkSync(inside('data'), inside('www/link'));
    symlinkSync('../data/keys', inside('www/relative'));
    symlinkSync('loop', inside('loop'));
    server = createServer().listen(inside('engine/admin.sock'));
    await new Promise((done) => server.once('listening', done));
    linkSync(inside('engine/admin.sock'), inside('second.sock'));
});

after(async () => {
    await new Promise((done) => server.close(done));
    rmSync(folder, { recursive: true });
});

const places = () => ({
    folders: [inside('data'), inside('engine')],
    sockets: [inside('engine/admin.sock')],
    foreignWriter: null
});

describe('resolvePath', () => {
    it('follows links, also before a tail that does not exist', () => {
        expect(resolvePath(inside('www/link/new/file'))).to.equal(inside('data/new/file'));
        expect(resolvePath(inside('www/relative'))).to.equal(inside('data/keys'));
        expect(resolvePath(inside('nothing/yet'))).to.equal(inside('nothing/yet'));
    });

    it('does not judge loops and places that each process sees differently', () => {
        expect(resolvePath(inside('loop'))).to.be.null();
        expect(resolvePath('/proc/self/root/etc')).to.be.null();
        expect(resolvePath('/dev/fd/3')).to.be.null();
    });
});

describe('folderFault', () => {
    it("refuses the panel's folders, what leads into them, and what holds them", () => {
        for (const path of [
            'data',
            'data/keys',
            'engine',
            'www/link',
            'www/link/keys',
            'www/relative/x',
            '.'
        ]) {
            expect(folderFault(inside(path), places()), path).to.match(/folders of the panel/);
        }
        expect(folderFault('/', places())).to.match(/holds/);
        expect(folderFault('/proc/self/cwd', places())).to.match(/cannot be judged/);
    });

    it("refuses a folder that another user may write, where the engine runs as the panel's user", () => {
        const shared = { ...places(), foreignWriter };
        const fault = (path: string): string | null => folderFault(inside(path), shared);
        expect(fault('www/site')).to.be.null();
        for (const [path, mode] of [
            ['www/site', 0o757],
            ['www', 0o757]
        ] as const) {
            chmodSync(inside(path), mode);
            expect(fault('www/site'), path).to.contain(`${inside(path)}: others may write to it`);
            expect(folderFault(inside('www/site'), places())).to.be.null();
            chmodSync(inside(path), 0o755);
        }
        // In a folder such as /tmp another user cannot take the place of what is there, but of what is not there yet.
        chmodSync(inside('www'), 0o1777);
        expect(fault('www/site')).to.be.null();
        expect(fault('www/new')).to.contain('others may write to it');
        chmodSync(inside('www'), 0o755);
    });

    it('lets its neighbours be', () => {
        expect(folderFault(inside('www/site'), places())).to.be.null();
        expect(folderFault(inside('database'), places())).to.be.null();
    });
});

describe('fileFault', () => {
    it('knows the admin socket under any of its names', () => {
        expect(fileFault(inside('engine/admin.sock'), places())).to.match(/folders/);
        expect(fileFault(inside('second.sock'), places())).to.match(/admin socket/);
        expect(fileFault(inside('other.sock'), places())).to.be.null();
        expect(
            fileFault(inside('www/../not-yet.sock'), {
                ...places(),
                folders: [],
                sockets: [inside('not-yet.sock')]
            })
        ).to.match(/admin socket/);
    });
});

describe('createReadable', () => {
    it('tells a folder that can be served from one that cannot, and from what is none', async () => {
        const me = createReadable({ name: 'me', uid: 0, gid: 0, switched: false });
        writeFileSync(inside('file'), '');
        expect(await me(inside('www/site'))).to.be.null();
        expect(await me(inside('file'))).to.match(/is not a folder/);
        expect(await me(inside('absent'))).to.match(/is not a folder/);
    });

    it("asks as the engine's user", { skip: process.getuid?.() !== 0 }, async () => {
        const nobody = createReadable({ name: 'nobody', uid: 65534, gid: 65534, switched: true });
        mkdirSync(inside('closed'), { mode: 0o711 });
        const outer = mkdtempSync('/tmp/portico-open-');
        try {
            mkdirSync(join(outer, 'shut'), { mode: 0o700 });
            expect(await nobody('/usr/share')).to.be.null();
            expect(await nobody(join(outer, 'shut'))).to.match(/nobody/);
        } finally {
            rmSync(outer, { recursive: true });
        }
    });
});
