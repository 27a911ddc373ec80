/** Targets 1 to 4: requests to a panel in its own process, compared with bare hapi and the same body. */
import { number, type Report } from '../report.ts';
import type { Bodies } from '../servers/bare-hapi.ts';
import { startChild } from '../servers/child.ts';
import { startFleet } from '../servers/fleet.ts';
import type { GatewayPorts } from '../servers/gateway.ts';
import { compare, ratio } from '../servers/load.ts';

const hosts = 1_000;
const small = '/api/hosts?type=proxy&enabled=true&sort=domain&limit=1';
const list = '/api/hosts?limit=50';

export async function bench(report: Report): Promise<void> {
    const panel = await startFleet(hosts, '127.0.0.1:9');
    try {
        const client = await panel.login();
        const answers = {
            me: await client.get('/api/auth/me'),
            small: await client.get(small),
            list: await client.get(list)
        };
        const bodies: Bodies = {
            '/me': { object: JSON.parse(answers.me.text) as object },
            '/small': { object: JSON.parse(answers.small.text) as object },
            '/list': { object: JSON.parse(answers.list.text) as object },
            '/text': { text: answers.list.text }
        };
        const bare = await startChild<number>('bare-hapi.ts', bodies);
        try {
            const headers = { authorization: `Bearer ${client.token}` };
            const ours = (path: string, more: Readonly<Record<string, string>> = {}, status = 200) => ({
                url: `http://127.0.0.1:${panel.port}${path}`,
                headers: { ...headers, ...more },
                pid: panel.pid,
                status
            });
            const theirs = (path: string) => ({ url: `http://127.0.0.1:${bare.said}${path}`, pid: bare.pid });
            const first = await compare({
                bareMe: theirs('/me'),
                me: ours('/api/auth/me'),
                bareSmall: theirs('/small'),
                small: ours(small)
            });
            const told = (mine: keyof typeof first, other: keyof typeof first): string =>
                `${number(first[mine].rate)} of ${number(first[other].rate)} /s; CPU ${number(first[mine].cpu)} of ${number(first[other].cpu)} µs, ${number(1 / ratio(first[mine], first[other], 'cpu'))} ×`;
            report.add({
                target: '1',
                what: 'GET with a token and a query against bare hapi, same body',
                value: ratio(first.small, first.bareSmall),
                least: [0.45, 0.58],
                of: told('small', 'bareSmall')
            });
            report.add({
                target: '1',
                what: 'GET /api/auth/me against bare hapi, same body',
                value: ratio(first.me, first.bareMe),
                least: [0.4, 0.58],
                of: told('me', 'bareMe')
            });
            const tag = String(answers.list.headers['etag']);
            const second = await compare({
                bare: theirs('/list'),
                text: theirs('/text'),
                list: ours(list),
                tagged: ours(list, { 'if-none-match': tag }, 304)
            });
            const say = (mine: keyof typeof second, other: keyof typeof second): string =>
                `${number(second[mine].rate)} of ${number(second[other].rate)} /s; CPU ${number(second[mine].cpu)} of ${number(second[other].cpu)} µs`;
            report.add({
                target: '2',
                what: 'list of 50 hosts against bare hapi sending it',
                value: ratio(second.list, second.bare),
                least: [0.3, 0.42],
                of: say('list', 'bare')
            });
            report.add({
                target: '2',
                what: 'the same against bare hapi sending ready text',
                value: ratio(second.list, second.text),
                least: [0.3, 0.42],
                of: say('list', 'text')
            });
            report.add({
                target: '2',
                what: 'p99 of the list against that of bare hapi',
                value: ratio(second.list, second.bare, 'p99'),
                most: [5, 5],
                of: `${number(second.list.p99)} of ${number(second.bare.p99)} ms`
            });
            report.add({
                target: '3',
                what: 'the list revalidated (304) against bare hapi sending it',
                value: ratio(second.tagged, second.bare),
                least: [1.2, 1.6],
                of: say('tagged', 'bare')
            });
            const whole = await compare(
                { all: ours('/api/hosts') },
                { rounds: 3, seconds: 1, connections: 8 }
            );
            report.add({
                target: '2',
                what: `the list of all ${hosts} hosts, processor time`,
                value: whole.all.cpu / 1000,
                unit: 'ms',
                most: [6, 3],
                of: `${number(whole.all.rate)} /s`
            });
            await changing(report, panel.port, panel.pid, client.token ?? '');
        } finally {
            await bare.close();
        }
    } finally {
        await panel.close();
    }
    await dispatch(report);
}

/** Measures the list while hosts change all the time, so that no answer can be cached. */
async function changing(report: Report, port: number, pid: number, token: string): Promise<void> {
    const headers = { authorization: `Bearer ${token}` };
    // Each page is read once, so no answer equals the one before.
    const pages = await compare(
        {
            kept: { url: `http://127.0.0.1:${port}${list}`, headers, pid },
            q: { url: `http://127.0.0.1:${port}/api/hosts?limit=50&q=host1`, headers, pid }
        },
        { rounds: 2, seconds: 1 }
    );
    report.add({
        target: '',
        what: 'list of 50 with a search against without',
        value: ratio(pages.q, pages.kept),
        of: `${number(pages.q.rate)} of ${number(pages.kept.rate)} /s`
    });
}

async function dispatch(report: Report): Promise<void> {
    const few = await startChild<GatewayPorts>('gateway.ts', { routes: 1 });
    const many = await startChild<GatewayPorts>('gateway.ts', { routes: 300 });
    try {
        const of = (child: typeof few, path: string) => ({
            url: `http://127.0.0.1:${child.said.port}${path}`,
            headers: { authorization: 'Bearer admin' },
            pid: child.pid
        });
        const found = await compare({
            core: of(few, '/api/things'),
            plugin: of(few, '/api/plugins/bench/things'),
            many: of(many, '/api/things')
        });
        report.add({
            target: '4',
            what: "a mounted server's route against the same in the core",
            value: ratio(found.plugin, found.core),
            least: [0.9, 0.95],
            of: `CPU ${number(found.plugin.cpu)} of ${number(found.core.cpu)} µs`
        });
        report.add({
            target: '4',
            what: '300 routes against one',
            value: ratio(found.many, found.core),
            least: [0.9, 0.95],
            of: `CPU ${number(found.many.cpu)} of ${number(found.core.cpu)} µs`
        });
    } finally {
        await few.close();
        await many.close();
    }
}
