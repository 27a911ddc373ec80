/** Registries beside the one of an engine, with the same images, that ask for a password: one directly, the other by tokens. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { until } from '../../../support/until.ts';
import { guardedRegistries, type TestEngine } from '../engines.ts';
import { writeRegistry } from './engine-files.ts';
import type { ContainerRig } from './rig.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('token-server.mjs', import.meta.url));
const tokenPort = '5004';
/** Who may use them. */
export const login = { username: 'robot', password: 'pass-of-robot-€' };
/** The password as htpasswd keeps it (bcrypt). */
const hashed = '$2b$04$2EKnd0vg64uR7ON422h/u./EVQaNfMj9RZkdoque2ZFpJ8QiGK4iG';

/** Two registries at {@link guardedRegistries}, processes of their own. */
export class GuardedRegistries implements AsyncDisposable {
    readonly #children: readonly ChildProcess[];

    private constructor(children: readonly ChildProcess[]) {
        this.#children = children;
    }

    static async start(engine: TestEngine): Promise<GuardedRegistries> {
        const { root } = engine;
        writeFileSync(join(root, 'htpasswd'), `${login.username}:${hashed}\n`);
        const certificate = [...['-keyout', join(root, 'tokens.key')], '-out', join(root, 'tokens.pem')];
        const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
        execFileSync('openssl', ['req', '-x509', ...curve, '-subj', '/CN=tokens', ...certificate], {
            stdio: 'ignore'
        });
        const auth = [
            `htpasswd: { realm: guarded, path: ${root}/htpasswd }`,
            `token: { realm: "http://127.0.0.1:${tokenPort}/token", service: guarded, issuer: tokens, rootcertbundle: ${root}/tokens.pem }`
        ];
        const files = guardedRegistries.map((at, index) =>
            writeRegistry(root, at, `auth: { ${auth[index]} }\n`)
        );
        const spaces = [`--net=/proc/${engine.pid}/ns/net`, 'setpriv', '--pdeathsig', 'KILL'];
        const tokens = spawn(
            'nsenter',
            [...spaces, process.execPath, script, tokenPort, root, `${login.username}:${login.password}`],
            { stdio: ['ignore', 'pipe', 'inherit'] }
        );
        const registries = files.map((file) =>
            spawn('nsenter', [...spaces, 'docker-registry', 'serve', file], { stdio: 'ignore' })
        );
        await once(tokens.stdout, 'data');
        for (const at of guardedRegistries) {
            await until(() => ask(engine, `http://${at}/v2/`, []), `the registry ${at}`, 60_000);
        }
        return new GuardedRegistries([tokens, ...registries]);
    }

    async [Symbol.asyncDispose](): Promise<void> {
        for (const child of this.#children) {
            if (child.exitCode === null && child.signalCode === null) {
                const exited = once(child, 'exit');
                child.kill('SIGKILL');
                await exited;
            }
        }
    }
}

/** Lets the plugin reach the registries that its engine sees: each request is made in the engine's network namespace. */
export function reachRegistries({ host, engine }: ContainerRig): void {
    const answer = async ({ url, method, headers }: Request): Promise<Response> => {
        const sent = [...headers].flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
        const text = await ask(engine, url, [...(method === 'HEAD' ? ['-I'] : ['-i']), ...sent]);
        const [head = '', body = ''] = text.split(/\r\n\r\n(.*)/s);
        const [first = '', ...lines] = head.split('\r\n');
        const told = lines.map((line): [string, string] => {
            const [name = '', value = ''] = line.split(/: (.*)/s);
            return [name, value];
        });
        return new Response(method === 'HEAD' ? null : body, {
            status: Number(first.split(' ')[1]),
            headers: told
        });
    };
    ['127.0.0.1', 'localhost'].forEach((name) => host.network.answer(name, answer));
}

async function ask({ pid }: TestEngine, url: string, args: readonly string[]): Promise<string> {
    const { stdout } = await run('nsenter', [`--net=/proc/${pid}/ns/net`, 'curl', '-sS', ...args, url]);
    return stdout;
}
