/** A private sshd that gives files over SFTP to the account that runs it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../ports.ts';
import { until } from '../../until.ts';

export interface SshServer {
    readonly port: number;
    readonly username: string;
    /** Opens it. */
    readonly privateKey: string;
    /** As in a file of known hosts, without the name. */
    readonly hostKey: string;
    close(): Promise<void>;
}

/** Starts one. @param folder - gets its keys */
export async function openSshd(folder: string): Promise<SshServer> {
    const at = (name: string): string => join(folder, name);
    for (const name of ['host', 'client']) {
        execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', at(name)]);
    }
    const port = await freePort();
    writeFileSync(at('authorized'), readFileSync(at('client.pub')));
    writeFileSync(
        at('config'),
        [
            `Port ${port}`,
            'ListenAddress 127.0.0.1',
            `HostKey ${at('host')}`,
            `AuthorizedKeysFile ${at('authorized')}`,
            `PidFile ${at('pid')}`,
            'UsePAM no',
            'PasswordAuthentication no',
            'StrictModes no',
            'PermitRootLogin yes',
            'Subsystem sftp internal-sftp',
            ''
        ].join('\n')
    );
    if (process.getuid?.() === 0) {
        mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
    }
    const child = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', at('config')], { stdio: 'ignore' });
    await untilOpen(port);
    return {
        port,
        username: userInfo().username,
        privateKey: readFileSync(at('client'), 'utf8'),
        hostKey: readFileSync(at('host.pub'), 'utf8').trim().split(' ', 2).join(' '),
        close: () => end(child)
    };
}

/** Resolves when something listens on a port of this machine. */
export async function untilOpen(port: number): Promise<void> {
    await until(
        () =>
            new Promise<boolean>((resolve) => {
                const socket = createConnection(port, '127.0.0.1', () => resolve(true));
                socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
            }),
        `port ${port} to open`,
        20_000
    );
}

/** Ends a child process. */
export async function end(child: ChildProcess): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGTERM');
        await ended;
    }
}
