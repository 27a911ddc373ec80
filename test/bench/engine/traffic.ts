/** Target 12: requests through the engine with ten thousand hosts, compared with an engine that has one route. */
import { startCaddy } from '../../support/engine/caddy.ts';
import { number, type Report } from '../report.ts';
import { nameOf, startFleet } from '../servers/fleet.ts';
import { compare, type Compared, ratio } from '../servers/load.ts';
import { startNginx } from '../servers/nginx.ts';

const many = 10_000;

export async function bench(report: Report): Promise<void> {
    const upstream = await startNginx(0, nameOf);
    const panel = await startFleet(many, upstream.address);
    const bare = await startCaddy();
    try {
        const port = bare.settings.httpPort;
        await bare.load({
            admin: {
                listen: `unix/${bare.context.folders.adminSocket}`,
                origins: ['caddy'],
                config: { persist: false }
            },
            apps: {
                http: {
                    servers: {
                        one: {
                            listen: [`127.0.0.1:${port}`],
                            automatic_https: { disable: true },
                            routes: [
                                {
                                    handle: [
                                        {
                                            handler: 'reverse_proxy',
                                            upstreams: [{ dial: upstream.address }],
                                            transport: { protocol: 'http' }
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                }
            }
        });
        const pid = panel.enginePid() ?? 0;
        const site = (name: string, status = 200) => ({
            url: `http://127.0.0.1:${panel.httpPort}/`,
            headers: { host: name },
            pid,
            status
        });
        const found = await compare(
            {
                bare: { url: `http://127.0.0.1:${port}/`, headers: { host: 'x.test' }, pid: bare.pid },
                first: site(nameOf(1)),
                last: site(nameOf(many - 7)),
                rich: site(nameOf(many)),
                unknown: site('nobody.example.test', 404)
            },
            { rounds: 3, seconds: 2 }
        );
        const say = (ours: Compared, theirs: Compared): string =>
            `${number(ours.rate)} of ${number(theirs.rate)} /s; CPU ${number(ours.cpu)} of ${number(theirs.cpu)} µs`;
        const add = (
            what: string,
            ours: Compared,
            theirs: Compared,
            least: readonly [number, number]
        ): void =>
            report.add({ target: '12', what, value: ratio(ours, theirs), least, of: say(ours, theirs) });
        add(`the last of ${many} hosts against the first`, found.last, found.first, [0.55, 0.67]);
        add('a host with a realistic chain against a bare proxy', found.rich, found.bare, [0.85, 0.92]);
        add('the first host against a bare proxy', found.first, found.bare, [0.85, 0.92]);
        add('an unknown host against a known one', found.unknown, found.first, [1, 3]);
    } finally {
        await bare.close();
        await panel.close();
        await upstream.close();
    }
}
