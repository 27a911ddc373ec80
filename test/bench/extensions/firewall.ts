/** The firewall against `nft` alone: an apply of many rules and elements, a stream over many applies, and the list of many bans. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { noNamespaces } from '../../extensions/firewall/namespaces.ts';
import { FirewallRig } from '../../extensions/firewall/rig.ts';
import { median, number, type Report } from '../report.ts';

const rounds = 5;
const rules = 1_000;
const elements = 100_000;
const bans = 10_000;
const applies = 100;
const streams = 8;

export async function bench(report: Report): Promise<void> {
    if (noNamespaces !== undefined) {
        console.log(`      not the firewall: ${noNamespaces}`);
        return;
    }
    await using rig = await FirewallRig.start({ timing: { patienceMs: 120_000 } });
    await apply(rig, report);
    await listBans(rig, report);
    await keepStreams(rig, report);
}

async function apply(rig: FirewallRig, report: Report): Promise<void> {
    const document = {
        format: 'portico-firewall',
        version: 1,
        sets: [
            {
                name: 'list',
                family: 'ipv4',
                // Every second address, so that none can be joined with the next one.
                elements: Array.from({ length: elements }, (_, at) => at * 2).map(
                    (at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
                )
            }
        ],
        rules: Array.from({ length: rules }, (_, at) => ({
            direction: 'in',
            action: 'accept',
            protocol: 'tcp',
            ports: [String(at + 1)],
            sources: ['@list']
        }))
    };
    await rig.post('/import', { document, mode: 'replace' });
    const { data } = await rig.get('/ruleset?which=draft&format=text');
    const file = join(rig.host.dataDir, '..', 'bare.nft');
    writeFileSync(file, data.text);
    const [ours, bare]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
        await rig.network.server.run('nft', 'flush', 'ruleset');
        bare.push(await took(() => rig.network.server.run('nft', '-f', file)));
        await rig.network.server.run('nft', 'flush', 'ruleset');
        let trialId = '';
        ours.push(
            await took(
                async () =>
                    (trialId = (await rig.post('/apply', { confirmSeconds: 600 })).data.trialId as string)
            )
        );
        await rig.post('/revert', { trialId });
    }
    report.add({
        target: 'fw1',
        what: `an apply of ${rules} rules and ${elements} elements against nft -f`,
        value: median(ours) / median(bare),
        most: [1.5, 1.5],
        of: `${number(median(ours))} of ${number(median(bare))} ms`
    });
}

async function listBans(rig: FirewallRig, report: Report): Promise<void> {
    await rig.host.db.write(async (em) => {
        await em.execute(
            `insert into bans (address, source, created_at) with recursive n(x) as (select 0 union all select x + 1 from n where x < ${bans - 1})
            select '172.20.' || (x / 256) || '.' || (x % 256), 'manual', 0 from n`
        );
    });
    await rig.host.restart();
    const ms = await took(async () => {
        const { data } = await rig.get('/bans?limit=10000');
        if (data.length !== bans) {
            throw new Error(`${data.length} bans are listed`);
        }
    });
    report.add({ target: 'fw4', what: `${bans} bans in one call`, value: ms, unit: 'ms' });
}

/** Connections that stand while the rules change, so that none of them could be made anew under every second ruleset. */
async function keepStreams(rig: FirewallRig, report: Report): Promise<void> {
    const { server, visitor } = rig.network;
    const names = Array.from({ length: streams }, (_, at) => `stream${at}`);
    await server.listen(7001);
    for (const name of names) {
        await visitor.hold(name, '10.77.0.1', 7001);
    }
    const rulesOf = (action: string): object => ({
        ...{ format: 'portico-firewall', version: 1, sets: [] },
        rules: [{ direction: 'in', action, protocol: 'tcp', ports: ['7001'] }]
    });
    let isOver = false;
    let [echoes, lost, open] = [0, 0, 0];
    const flow = async (name: string): Promise<void> => {
        while (!isOver) {
            const answer = await visitor.echo(name);
            echoes += 1;
            await wait(5);
            lost += answer === 'open' ? 0 : 1;
        }
    };
    const flowing = names.map(flow);
    for (let at = 0; at < applies; at += 1) {
        const isClosed = at % 2 === 0;
        await rig.post('/import', {
            document: rulesOf(isClosed ? 'reject' : 'accept'),
            mode: 'replace'
        });
        await rig.settle();
        open += isClosed && (await visitor.connect('10.77.0.1', 7001)) === 'open' ? 1 : 0;
    }
    isOver = true;
    await Promise.all(flowing);
    if (open > 0) {
        throw new Error(`New connections got in under ${open} rulesets that refuse them`);
    }
    report.add({
        target: 'fw3',
        what: `echoes lost by ${streams} streams over ${applies} applies`,
        value: lost,
        unit: '',
        most: [0, 0],
        of: `of ${number(echoes)}`
    });
}

async function took(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return performance.now() - began;
}
