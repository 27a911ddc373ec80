/** What rclone serves from a folder, with a user and a password. */
import { spawn } from 'node:child_process';

import { freePort } from '../../ports.ts';
import { end, untilOpen } from './sshd.ts';

export interface RcloneServer {
    readonly url: string;
    readonly port: number;
    readonly username: string;
    readonly password: string;
    close(): Promise<void>;
}

/** Starts one. @param protocol - `restic` is the REST server of restic */
export async function serveFolder(protocol: 'restic' | 'webdav', folder: string): Promise<RcloneServer> {
    const port = await freePort();
    const [username, password] = ['backup', 'p@ss:word/with#signs'];
    const child = spawn(
        'rclone',
        ['serve', protocol, '--addr', `127.0.0.1:${port}`, '--user', username, '--pass', password, folder],
        { stdio: 'ignore', env: { PATH: process.env['PATH'], HOME: folder } }
    );
    await untilOpen(port);
    return { url: `http://127.0.0.1:${port}/`, port, username, password, close: () => end(child) };
}
