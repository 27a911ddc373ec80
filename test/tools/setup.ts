import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const setupScript = resolve(import.meta.dirname, '../../tools/setup.mjs');

const aptGet = `#!/bin/sh
echo "apt-get $* frontend=$DEBIAN_FRONTEND" >>"$JOURNAL"
case "$*" in
*update*) : >"$REFRESHED" ;;
*install*) if [ "$APT" = stale ] && [ ! -e "$REFRESHED" ]; then echo 'no such file in the archive' >&2; exit 100; fi
    if [ "$APT" = broken ]; then echo 'nothing can be installed' >&2; exit 100; fi ;;
esac
`;

const systemctlBinary = `#!/bin/sh
echo "systemctl $*" >>"$JOURNAL"
if [ "$1" = cat ]; then [ "$UNIT" = known ]; exit; fi
`;

interface Options {
    uid?: number;
    systemd?: boolean;
    purpose?: string;
    environment?: Record<string, string>;
}

describe('ensurePackages', () => {
    let folder: string;

    beforeEach(async () => {
        folder = await mkdtemp(join(tmpdir(), 'setup-'));
        await mkdir(join(folder, 'bin'));
        await program('apt-get', aptGet);
        await program('systemctl', systemctlBinary);
    });

    afterEach(() => rm(folder, { recursive: true, force: true }));

    it('says and does nothing where everything is there', async () => {
        await program('caddy', '#!/bin/sh\n');
        expect(await ensure()).to.equal({ said: '', ran: [] });
    });

    it('says and does nothing where a variable names another binary', async () => {
        expect(await ensure({ environment: { PORTICO_CADDY: '/opt/caddy' } })).to.equal({
            said: '',
            ran: []
        });
    });

    it('installs as root without a question, without the recommended packages, and waits for the lock', async () => {
        const { said, ran } = await ensure();
        expect(ran).to.equal([
            'apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install -y -q --no-install-recommends caddy frontend=noninteractive'
        ]);
        expect(said).to.equal('setup: installing caddy (the proxy engine) with apt-get\n');
    });

    it('refreshes the package lists only when the first attempt fails', async () => {
        const { said, ran } = await ensure({ environment: { APT: 'stale' } });
        expect(ran.map((line) => /update|install(?= )/.exec(line)?.[0])).to.equal([
            'install',
            'update',
            'install'
        ]);
        expect(said).to.not.contain('could not');
    });

    it('goes on without the engine when nothing helps, and shows why', async () => {
        const { said } = await ensure({ environment: { APT: 'broken' } });
        expect(said)
            .to.contain('apt-get could not install caddy')
            .and.to.contain('PORTICO_CADDY')
            .and.to.contain('nothing can be installed');
    });

    it('says what to run where it is not root, and runs nothing', async () => {
        const { said, ran } = await ensure({ uid: 1000 });
        expect(said).to.contain(
            'not installed: caddy (the proxy engine). Run: sudo apt-get install --no-install-recommends caddy'
        );
        expect(ran).to.equal([]);
    });

    it('says what is missing where there is no apt-get', async () => {
        await rm(join(folder, 'bin/apt-get'));
        const { said, ran } = await ensure();
        expect(said).to.contain("Install it with this system's package manager, or set PORTICO_CADDY");
        expect(ran).to.equal([]);
    });

    it('stops the service that the package brings, and says so', async () => {
        const { said, ran } = await ensure({ systemd: true });
        expect(ran[0]).to.equal('systemctl cat caddy.service');
        expect(ran.at(-1)).to.equal('systemctl disable --now caddy.service');
        expect(said).to.contain('stopped and disabled caddy.service');
    });

    it('leaves a service alone that was there before', async () => {
        const { said, ran } = await ensure({ systemd: true, environment: { UNIT: 'known' } });
        expect(ran.some((line) => line.includes('disable'))).to.be.false();
        expect(said).to.not.contain('disabled');
    });

    it('installs what the benches need only for them', async () => {
        const tests =
            'caddy pebble openssl bind9 lego prometheus php8.2-fpm php8.2-cli composer mariadb-server mariadb-backup postgresql cron restic rclone libarchive-tools xz-utils bzip2 openssh-client openssh-server systemd nftables fail2ban crowdsec iproute2 iputils-ping smartmontools docker.io podman runc docker-registry git bubblewrap busybox-static minisign chromium firefox-esr';
        expect((await ensure({ purpose: 'test' })).ran[0]).to.contain(`recommends ${tests} frontend`);
        expect((await ensure({ purpose: 'bench' })).ran.at(-1)).to.contain(
            `recommends ${tests} wrk nginx-light frontend`
        );
    });

    it('writes the file without which a package would register the machine, and keeps one that is there', async () => {
        const file = join(folder, 'etc/crowdsec/online_api_credentials.yaml');
        await ensure({ purpose: 'test' });
        expect(await readFile(file, 'utf8')).to.match(/^#.+\n$/);
        await writeFile(file, 'mine');
        await ensure({ purpose: 'test' });
        expect(await readFile(file, 'utf8')).to.equal('mine');
    });

    async function program(name: string, source: string): Promise<void> {
        const path = join(folder, 'bin', name);
        await writeFile(path, source);
        await chmod(path, 0o755);
    }

    async function ensure({
        uid = 0,
        systemd = false,
        purpose = 'start',
        environment = {}
    }: Options = {}): Promise<{ said: string; ran: string[] }> {
        const journal = join(folder, 'journal');
        const machine = `{ getuid: () => ${uid}, systemd: ${JSON.stringify(systemd ? folder : join(folder, 'none'))}, root: ${JSON.stringify(folder)} }`;
        const script = `import(${JSON.stringify(setupScript)}).then((setup) => setup.ensurePackages(${JSON.stringify(purpose)}, ${machine}))`;
        const env = {
            PATH: join(folder, 'bin'),
            JOURNAL: journal,
            REFRESHED: join(folder, 'refreshed'),
            ...environment
        };
        const said = await new Promise<string>((done, fail) => {
            execFile(process.execPath, ['-e', script], { env }, (error, _stdout, stderr) =>
                error === null ? done(stderr) : fail(error)
            );
        });
        const ran = await readFile(journal, 'utf8').catch(() => '');
        return { said, ran: ran.split('\n').filter(Boolean) };
    }
});
