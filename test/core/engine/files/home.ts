import {
    chmodSync,
    chownSync,
    existsSync,
    lstatSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { dirname, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    engineHome,
    type EngineMachine,
    prepareHome,
    writeForEngine
} from '../../../../core/src/engine/files/home.ts';
import { EngineUnavailable } from '../../../../core/src/engine/port.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;
const asRoot = itUnless(process.getuid?.() === 0 ? undefined : 'needs root', it);

describe('engineHome', () => {
    let top: string;
    let data: string;
    let machine: EngineMachine;

    beforeEach(() => {
        top = mkdtempSync('/tmp/portico-home-');
        data = join(top, 'data');
        mkdirSync(data, { mode: 0o700 });
        writeFileSync(
            join(top, 'passwd'),
            'root:x:0:0:root:/root:/bin/sh\ncaddy:x:4001:4002:Caddy:/var/lib/caddy:/usr/sbin/nologin\nproxy:x:4003:4004::/:/bin/false\n'
        );
        machine = {
            uid: 0,
            gid: 0,
            runtimeDir: undefined,
            temporary: join(top, 'tmp'),
            users: join(top, 'passwd'),
            roots: { persistent: join(top, 'lib'), runtime: join(top, 'run') }
        };
        mkdirSync(machine.temporary, { mode: 0o777 });
    });

    afterEach(() => rmSync(top, { recursive: true, force: true }));

    it("is outside the data folder for root, as the package's user, and the same by every path to the folder", () => {
        const home = engineHome(data, null, machine);
        expect(home.owner).to.equal({ name: 'caddy', uid: 4001, gid: 4002, switched: true });
        for (const path of [
            home.storage,
            home.table,
            home.certificates,
            home.adminSocket,
            home.logFile,
            home.startFile,
            home.scratch
        ]) {
            expect(path.startsWith(`${data}/`)).to.be.false();
        }

        for (const path of [home.lastFile, home.lockFile, home.pidFile]) {
            expect(path.startsWith(`${data}/`)).to.be.true();
        }

        symlinkSync(data, join(top, 'link'));
        expect(engineHome(join(top, 'link'), null, machine)).to.equal(home);
        expect(engineHome(data, 'proxy', machine).owner.uid).to.equal(4003);
        expect(engineHome(data, 'root', machine).owner.switched).to.be.false();
        mkdirSync(join(top, 'other'));
        expect(engineHome(join(top, 'other'), null, machine).runtime).to.not.equal(home.runtime);
    });

    it('is below the data folder for all other accounts, and never of another one', () => {
        const home = engineHome(data, null, { ...machine, uid: 4003, gid: 4004 });
        expect(home.owner).to.equal({ name: '4003', uid: 4003, gid: 4004, switched: false });
        expect(home.adminSocket).to.equal(join(data, 'engine/admin/admin.sock'));
        expect(() => engineHome(data, 'caddy', { ...machine, uid: 4003, gid: 4004 })).to.throw(
            EngineUnavailable,
            'the panel is not root and cannot run the engine as caddy: remove PORTICO_ENGINE_USER'
        );
        expect(engineHome(data, 'proxy', { ...machine, uid: 4003, gid: 4004 }).owner.switched).to.be.false();
    });

    it('refuses a user that does not exist, or a name that is none', () => {
        for (const user of ['nobody-here', '', 'caddy:x', '0']) {
            expect(() => engineHome(data, user, machine), user).to.throw(EngineUnavailable);
        }
    });

    it('puts the socket of a long path where it fits, and only into a runtime folder that is private', () => {
        const deep = join(data, 'x'.repeat(100));
        mkdirSync(deep);
        const someone = { ...machine, uid: process.getuid?.() ?? 0, gid: 0 };
        // As root the folders do not depend on the data folder's length.
        const user = { ...someone, uid: 4003 };
        const short = (path: string): boolean => Buffer.byteLength(path) <= 107;
        expect(
            engineHome(deep, null, user).adminSocket.startsWith(`${machine.temporary}/portico-4003-`)
        ).to.be.true();

        const runtimeDir = join(top, 'xdg');
        mkdirSync(runtimeDir, { mode: 0o755 });
        expect(
            engineHome(deep, null, { ...user, runtimeDir }).adminSocket.startsWith(machine.temporary)
        ).to.be.true();
        chmodSync(runtimeDir, 0o700);
        expect(
            engineHome(deep, null, {
                ...user,
                uid: someone.uid === 0 ? 4003 : someone.uid,
                runtimeDir
            }).adminSocket.startsWith(someone.uid === 0 ? machine.temporary : runtimeDir)
        ).to.be.true();
        expect(
            engineHome(deep, null, { ...user, runtimeDir: 'relative' }).adminSocket.startsWith(
                machine.temporary
            )
        ).to.be.true();
        expect(short(engineHome(deep, null, user).adminSocket)).to.be.true();
        expect(() => engineHome(deep, null, { ...user, temporary: join(top, 'y'.repeat(100)) })).to.throw(
            EngineUnavailable
        );
    });

    it('refuses a path that the engine would read as a placeholder', () => {
        const odd = join(data, '{env.HOME}');
        mkdirSync(odd);
        expect(() => engineHome(odd, null, { ...machine, uid: 4003 })).to.throw(EngineUnavailable);
    });

    asRoot('makes folders that only the panel and the engine can enter', () => {
        const home = engineHome(data, null, machine);
        for (const round of [1, 2]) {
            prepareHome(home);
            const modes = Object.fromEntries(
                [
                    dirname(home.persistent),
                    dirname(home.runtime),
                    home.persistent,
                    home.runtime,
                    home.storage,
                    home.table,
                    home.certificates,
                    home.scratch,
                    dirname(home.adminSocket),
                    dirname(home.logFile),
                    dirname(home.lockFile)
                ].map((path) => [
                    path.slice(top.length),
                    (({ mode, uid, gid }) => `${(mode & 0o7777).toString(8)} ${uid}:${gid}`)(lstatSync(path))
                ])
            );
            const hash = home.runtime.split('/').at(-1);
            const place = readFileSync(join(data, 'engine/place'), 'utf8').trim();
            expect(modes, `round ${round}`).to.equal({
                '/lib': '711 0:0',
                '/run': '711 0:0',
                [`/lib/${hash}`]: '710 0:4002',
                [`/run/${hash}`]: '710 0:4002',
                [`/lib/${hash}/storage-${place}`]: '700 4001:4002',
                [`/run/${hash}/table`]: '750 0:4002',
                [`/run/${hash}/certificates-${place}`]: '750 0:4002',
                [`/run/${hash}/scratch`]: '700 4001:4002',
                [`/run/${hash}/admin`]: '700 4001:4002',
                [`/lib/${hash}/log-${place}`]: '700 4001:4002',
                '/data/engine': '700 0:0'
            });
        }
    });

    asRoot('uses nothing that another user put in its way', () => {
        const home = engineHome(data, null, machine);
        const obstacles: readonly (() => void)[] = [
            () => symlinkSync(top, dirname(home.runtime)),
            () => {
                mkdirSync(dirname(home.runtime));
                chownSync(dirname(home.runtime), 4003, 4004);
            },
            () => {
                mkdirSync(dirname(home.runtime));
                chmodSync(dirname(home.runtime), 0o777);
            },
            () => {
                mkdirSync(dirname(home.runtime));
                symlinkSync(top, home.runtime);
            },
            () => writeFileSync(dirname(home.runtime), '')
        ];
        for (const [index, put] of obstacles.entries()) {
            put();
            expect(() => prepareHome(home), `obstacle ${index}`).to.throw(EngineUnavailable);
            rmSync(dirname(home.runtime), { recursive: true });
        }

        const someone = { ...machine, uid: 0, roots: machine.roots };
        prepareHome(engineHome(data, null, someone));
    });

    asRoot("hands over what the former user stored, but not a stranger's file", () => {
        prepareHome(engineHome(data, null, machine));
        const { storage } = engineHome(data, null, machine);
        mkdirSync(join(storage, 'certificates'));
        writeFileSync(join(storage, 'certificates/kept'), '');
        writeFileSync(join(storage, 'strange'), '');
        writeFileSync(join(top, 'outside'), '');
        for (const path of ['certificates', 'certificates/kept']) {
            chownSync(join(storage, path), 4001, 4002);
        }

        chownSync(join(top, 'outside'), 4001, 4002);
        symlinkSync(join(top, 'outside'), join(storage, 'link'));

        prepareHome(engineHome(data, 'proxy', machine));
        expect(
            ['.', 'certificates', 'certificates/kept', 'strange'].map(
                (path) => lstatSync(join(storage, path)).uid
            )
        ).to.equal([4003, 4003, 4003, 0]);
        expect(lstatSync(join(top, 'outside')).uid).to.equal(4001);
    });

    asRoot('writes files that only the engine can read, whole or not at all', () => {
        const home = engineHome(data, null, machine);
        prepareHome(home);
        const path = join(home.certificates, '1-ab.key');
        writeForEngine(home, path, 'one');
        writeForEngine(home, path, 'two');
        const stats = lstatSync(path);
        expect({
            text: readFileSync(path, 'utf8'),
            mode: stats.mode & 0o7777,
            uid: stats.uid,
            gid: stats.gid
        }).to.equal({ text: 'two', mode: 0o600, uid: 4001, gid: 4002 });

        mkdirSync(join(home.certificates, 'folder'));
        expect(() => writeForEngine(home, join(home.certificates, 'folder'), 'x')).to.throw();
        expect(readdirSync(home.certificates)).to.equal(['1-ab.key', 'folder']);
        expect(existsSync(join(home.certificates, 'folder'))).to.be.true();
    });
});
