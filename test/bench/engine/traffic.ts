/** Target 12: requests through the engine with ten thousand hosts, compared with an engine that has one route. */
import { entryText } from '../../../core/src/engine/files/table/entry.ts';
import type { CompileContext } from '../../../core/src/engine/render/compile/context.ts';
import { httpTransport, tableDial } from '../../../core/src/engine/render/profile/proxy.ts';
import { explain } from '../../../core/src/engine/render/render.ts';
import { startCaddy } from '../../support/engine/caddy.ts';
import { testSite } from '../../support/engine/site.ts';
import { freePort } from '../../support/ports.ts';
import { number, type Report } from '../report.ts';
import { behaviours, nameOf, rowsOf, startFleet } from '../servers/fleet.ts';
import { compare, type Compared, ratio } from '../servers/load.ts';
import { startNginx } from '../servers/nginx.ts';

const many = 10_000;

export async function bench(report: Report): Promise<void> {
    const upstream = await startNginx(0, nameOf);
    const panel = await startFleet(many, upstream.address);
    const bare = await startCaddy();
    try {
        const port = bare.settings.httpPort;
        const [keepingPort, chainPort, lookedUpPort] = [await freePort(), await freePort(), await freePort()];
        const entry = {
            state: 'on',
            tls: 'none',
            profile: '0123456789abcdef',
            dial: upstream.address
        } as const;
        await bare.table.apply([{ name: 'x.test', from: null, to: entryText(entry) }]);
        await bare.load({
            admin: {
                listen: `unix/${bare.context.folders.adminSocket}`,
                origins: ['caddy'],
                config: { persist: false }
            },
            apps: {
                http: {
                    servers: {
                        proxy: serverOf(port, [proxyTo(upstream.address, { protocol: 'http' })]),
                        keeping: serverOf(keepingPort, [
                            proxyTo(upstream.address, httpTransport('http', null))
                        ]),
                        chain: serverOf(chainPort, [{ handle: chainOf(upstream.address, bare.context) }]),
                        lookedUp: serverOf(lookedUpPort, lookedUp(bare.context))
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
                keeping: {
                    url: `http://127.0.0.1:${keepingPort}/`,
                    headers: { host: 'x.test' },
                    pid: bare.pid
                },
                chain: { url: `http://127.0.0.1:${chainPort}/`, headers: { host: 'x.test' }, pid: bare.pid },
                lookedUp: {
                    url: `http://127.0.0.1:${lookedUpPort}/`,
                    headers: { host: 'x.test' },
                    pid: bare.pid
                },
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
        add(
            'the same against the same chain in an engine with one route',
            found.rich,
            found.chain,
            [0.7, 0.8]
        );
        report.add({
            target: '',
            what: "a bare proxy that keeps as many connections as the panel's against one of the engine's own settings",
            value: ratio(found.keeping, found.bare),
            of: say(found.keeping, found.bare)
        });
        report.add({
            target: '',
            what: 'the chain in an engine with one route against a bare proxy',
            value: ratio(found.chain, found.bare),
            of: say(found.chain, found.bare)
        });
        report.add({
            target: '',
            what: 'the chain behind the barest look-up of an address in a folder, against a bare proxy',
            value: ratio(found.lookedUp, found.bare),
            of: say(found.lookedUp, found.bare)
        });
        add('the first host against a bare proxy', found.first, found.bare, [0.85, 0.92]);
        add('an unknown host against a known one', found.unknown, found.first, [1, 3]);
    } finally {
        await bare.close();
        await panel.close();
        await upstream.close();
    }
}

const proxyTo = (address: string, transport: object): object => ({
    handle: [{ handler: 'reverse_proxy', upstreams: [{ dial: address }], transport }]
});

/** A server without a name. */
const serverOf = (port: number, routes: readonly unknown[]): object => ({
    listen: [`127.0.0.1:${port}`],
    automatic_https: { disable: true },
    routes
});

/** The fewest steps in which this engine takes an address from what may change without a load: a glob, and a pattern. */
const lookedUp = (context: CompileContext): readonly unknown[] => [
    { match: [{ file: { root: context.folders.table, try_files: ['/{http.request.host}/*'] } }] },
    {
        match: [
            {
                vars_regexp: {
                    '{http.matchers.file.relative}': { name: 'look', pattern: '^/[^/]+/.*,(.+)$' }
                }
            }
        ],
        handle: chainOf('{http.regexp.look.1}', context)
    }
];

/** The handlers that the panel makes for the last host, with the address in the place of the look-up. */
function chainOf(address: string, context: CompileContext): readonly unknown[] {
    const site = rowsOf(behaviours.length, '127.0.0.1:9').at(-1)?.site ?? testSite();
    const { handle } = explain(site, context)['profile'] as { readonly handle: readonly unknown[] };
    return JSON.parse(JSON.stringify(handle).replaceAll(tableDial, address)) as readonly unknown[];
}
