/** Visitors of sites that do not change. They must be answered whatever happens to the panel. */
import { Agent, request as httpRequest } from 'node:http';
import { Agent as TlsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';

export interface Site {
    readonly host: string;
    readonly port: number;
    readonly https: boolean;
    /** A text that the right answer contains. */
    readonly mark: string;
}

export interface Visits {
    readonly answered: number;
    /** Number of answers that did not come from the site. */
    readonly wrong: readonly string[];
    /** Number of connections that ended without an answer. A reload of an old engine can cause that; rarely the kernel refuses new ones, too. */
    readonly cut: readonly string[];
    /** Number of connections that were refused because no process listened. */
    readonly refused: number;
    /** The longest time without any answer, in milliseconds. */
    readonly longestGap: number;
}

export interface Visitors {
    /** Returns the numbers since the last call. */
    take(): Visits;
    close(): Promise<void>;
}

const pauseMs = 4;
const patienceMs = 15_000;

/** Starts visitors. @param count - how many visit at the same time; every second one keeps its connection */
export function startVisitors(sites: readonly Site[], count = 4): Visitors {
    let [answered, refused, longestGap] = [0, 0, 0];
    let last = performance.now();
    let wrong: string[] = [];
    let cut: string[] = [];
    let open = true;
    const agents = [
        new Agent({ keepAlive: true, maxSockets: 2 }),
        new TlsAgent({ keepAlive: true, maxSockets: 2 })
    ] as const;

    const visit = async (site: Site, keeps: boolean): Promise<void> => {
        try {
            const { status, body } = await ask(site, keeps ? agents[site.https ? 1 : 0] : false);
            const now = performance.now();
            longestGap = Math.max(longestGap, now - last);
            last = now;
            if (status === 200 && body.includes(site.mark)) {
                answered += 1;
            } else {
                wrong.push(`${site.host} answered ${status} ${body.slice(0, 200)}`);
            }
        } catch (error) {
            const { code, message } = error as NodeJS.ErrnoException;
            if (code === 'ECONNREFUSED') {
                refused += 1;
            } else {
                cut.push(`${site.https ? 'https' : 'http'} ${keeps ? 'kept' : 'new'} ${code ?? message}`);
            }
        }
    };
    const loops = Array.from({ length: count }, async (_, visitor) => {
        for (let n = visitor; open; n += 1) {
            await visit(sites[n % sites.length] as Site, visitor % 2 === 1);
            await wait(pauseMs);
        }
    });
    return {
        take() {
            const visits = {
                answered,
                wrong,
                cut,
                refused,
                longestGap: Math.max(longestGap, performance.now() - last)
            };
            [answered, refused, longestGap] = [0, 0, 0];
            wrong = [];
            cut = [];
            return visits;
        },
        async close() {
            open = false;
            await Promise.all(loops);
            agents.forEach((agent) => agent.destroy());
        }
    };
}

/** Sends one request to a site by its name. */
export function ask(
    site: Pick<Site, 'host' | 'port' | 'https'>,
    agent: Agent | false = false,
    path = '/'
): Promise<{
    readonly status: number;
    readonly location: string;
    readonly body: string;
    readonly fingerprint: string | null;
}> {
    return new Promise((resolve, reject) => {
        const send = site.https ? httpsRequest : httpRequest;
        const sent = send(
            {
                host: '127.0.0.1',
                port: site.port,
                path,
                agent,
                setHost: false,
                timeout: patienceMs,
                headers: { host: site.https ? `${site.host}:${site.port}` : site.host },
                ...(site.https ? { servername: site.host, rejectUnauthorized: false } : {})
            },
            (answer) => {
                const chunks: Buffer[] = [];
                const fingerprint = site.https
                    ? (answer.socket as import('node:tls').TLSSocket).getPeerCertificate().fingerprint256
                    : null;
                answer.on('data', (chunk: Buffer) => chunks.push(chunk));
                answer.once('error', reject);
                answer.once('end', () =>
                    resolve({
                        status: answer.statusCode ?? 0,
                        location: answer.headers.location ?? '',
                        body: Buffer.concat(chunks).toString(),
                        fingerprint
                    })
                );
            }
        );
        sent.once('timeout', () => sent.destroy(new Error(`no answer within ${patienceMs / 1000} s`)));
        sent.once('error', reject);
        sent.end();
    });
}
