/** Starts the child process that speaks to the npm registry, and ends it. */
import { fork } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { dirname, extname } from 'node:path';
import { fileURLToPath } from 'node:url';

import { InstallFailure } from '../failure.ts';
import type { InstallPhase } from '../ports.ts';
import type { CatalogueJob, CatalogueResult, InstallJob, InstallResult, Job, Message } from './job.ts';

/** The variables that the child needs to reach a registry through proxies and private authorities. */
const inherited = [
    'PATH',
    'LANG',
    'TZ',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'http_proxy',
    'https_proxy',
    'no_proxy',
    'NODE_EXTRA_CA_CERTS',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR'
];
const heapMb = 512;
const complaint = 2000;

/** How a job tells its progress and is cancelled. */
export interface ChildOptions {
    onPhase?(phase: InstallPhase): void;
    readonly signal?: AbortSignal;
}

/**
 * Runs one job in a child process. The child has ended when the promise settles.
 *
 * @throws InstallFailure
 */
export function runJob(job: InstallJob, options: ChildOptions): Promise<InstallResult>;
export function runJob(job: CatalogueJob, options: ChildOptions): Promise<CatalogueResult>;
export async function runJob(
    job: Job,
    { onPhase, signal }: ChildOptions
): Promise<InstallResult | CatalogueResult> {
    const deadline = AbortSignal.timeout(job.limits.totalMs);
    const stop = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
    assertGoing(signal);
    const env = Object.fromEntries(
        inherited.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
    );
    const cache = getCompileCacheDir();
    // The child gets neither .npmrc nor NODE_OPTIONS: no file of this machine decides what it does.
    const child = fork(fileURLToPath(new URL(`./main${extname(import.meta.url)}`, import.meta.url)), [], {
        env: { ...env, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) }) },
        execArgv: [
            ...conditions(),
            `--max-old-space-size=${heapMb}`,
            '--disable-warning=ExperimentalWarning'
        ],
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        serialization: 'advanced'
    });
    const kill = (): void => void child.kill('SIGKILL');
    stop.addEventListener('abort', kill, { once: true });
    let last = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (last = (last + text).slice(-complaint)));
    try {
        return await new Promise((resolve, reject) => {
            let answer: Message | null = null;
            child.on('message', (message: Message) => {
                if ('phase' in message) {
                    onPhase?.(message.phase);
                } else {
                    answer = message;
                }
            });
            child.on('error', reject);
            child.on('close', (_code, ended) => {
                if (answer !== null && 'done' in answer) {
                    resolve(answer.done);
                } else if (answer !== null && 'failed' in answer) {
                    reject(new InstallFailure(answer.failed.code, answer.failed.message));
                } else if (stop.aborted) {
                    reject(
                        signal?.aborted === true
                            ? cancelled()
                            : new InstallFailure(
                                  'REGISTRY_UNREACHABLE',
                                  `It took longer than ${Math.round(job.limits.totalMs / 1000)} s`
                              )
                    );
                } else if (ended === null) {
                    reject(new Error(`The process that installs failed: ${last}`));
                } else {
                    reject(
                        new InstallFailure(
                            'ARCHIVE_REFUSED',
                            `Unpacking it needed more than a process may use (${ended})`,
                            { cause: new Error(last) }
                        )
                    );
                }
            });
            child.send(job, (error) => (error === null ? undefined : kill()));
        });
    } finally {
        stop.removeEventListener('abort', kill);
        kill();
    }
}

/** Ends work that was cancelled. @throws InstallFailure CANCELLED when the signal is aborted */
export function assertGoing(signal: AbortSignal | undefined): void {
    if (signal?.aborted === true) {
        throw cancelled();
    }
}

function cancelled(): InstallFailure {
    return new InstallFailure('CANCELLED', 'The install was cancelled');
}

/** The export conditions that this process runs under: its child must find the same files. */
function conditions(): readonly string[] {
    return process.execArgv.flatMap((each, index, all) =>
        /^(--conditions=|-C=)/.test(each)
            ? [each]
            : /^(--conditions|-C)$/.test(each)
              ? [each, all[index + 1] ?? '']
              : []
    );
}
