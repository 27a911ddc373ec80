/** Other firewalls on this machine: what they have, what of it could be ours, and which of our rules they make idle. Nothing of theirs is changed. */
import { errors, isFailure } from '@portico/sdk';

import { parsePrefix } from '../address/interval.ts';
import type { Model, Rule } from '../draft/model.ts';
import { termsOf } from '../draft/objects/terms.ts';
import { fail } from '../errors.ts';
import { Evaluator, type Packet } from '../evaluate/evaluator.ts';
import type { Listed, Nft } from '../kernel/nft.ts';
import type { Ctx } from '../settings.ts';
import { type Adopted, adoptedModel } from './adopted.ts';
import { adoptFirewalld } from './firewalld.ts';
import { adoptIptables } from './iptables.ts';
import {
    type ForeignTool,
    foreignTools,
    publishedByIptables,
    type PublishedPort,
    publishedPorts
} from './kernel.ts';
import { adoptNft } from './nft.ts';
import { adoptUfw } from './ufw.ts';

/** Programs whose rules can become ours. */
export type AdoptableTool = 'ufw' | 'firewalld' | 'iptables' | 'nft';

const installs: Readonly<Record<string, string>> = {
    ufw: 'apt-get install ufw',
    'firewall-cmd': 'apt-get install firewalld',
    'iptables-save': 'apt-get install iptables',
    'ip6tables-save': 'apt-get install iptables'
};
/** An address that stands for any visitor (RFC 5737, RFC 3849). */
const anyVisitor = { ipv4: '203.0.113.77', ipv6: '2001:db8::77' } as const;
const freshMs = 3_000;

/** Reads what other programs have. */
export class Foreign {
    readonly #ctx: Ctx;
    readonly #nft: Nft;
    #seen: { readonly at: number; readonly ruleset: Promise<readonly Listed[]> } | null = null;
    #warned: { readonly at: number; readonly model: Promise<ReadonlyMap<string, Evaluator>> } | null = null;

    constructor(ctx: Ctx, nft: Nft) {
        this.#ctx = ctx;
        this.#nft = nft;
    }

    /** The programs whose rules are in the kernel; none where `nft` cannot be asked. */
    async tools(): Promise<readonly ForeignTool[]> {
        return foreignTools(await this.#ruleset());
    }

    /** Ports that other programs send to containers. */
    async published(): Promise<readonly PublishedPort[]> {
        const found = [...publishedPorts(await this.#ruleset())];
        const saved = await this.#output('iptables-save', ['-t', 'nat']).catch(() => '');
        for (const each of publishedByIptables(saved)) {
            if (!found.some(({ protocol, port }) => protocol === each.protocol && port === each.port)) {
                found.push(each);
            }
        }
        return found;
    }

    /** What of a program's rules could be ours. @throws TOOL_MISSING 50302, TOOL_FAILED 50251 */
    async adopt(tool: AdoptableTool): Promise<Adopted> {
        switch (tool) {
            case 'ufw':
                return adoptUfw(
                    await this.#output('ufw', ['show', 'added']),
                    await this.#output('ufw', ['status', 'verbose'])
                );
            case 'firewalld':
                return adoptFirewalld(await this.#output('firewall-cmd', ['--list-all-zones']));
            case 'iptables': {
                const [four, six] = [
                    adoptIptables(await this.#output('iptables-save', ['-t', 'filter']), 'ipv4'),
                    adoptIptables(await this.#output('ip6tables-save', ['-t', 'filter']), 'ipv6')
                ];
                return {
                    ...four,
                    rules: [...four.rules, ...six.rules],
                    unmatched: [...four.unmatched, ...six.unmatched]
                };
            }
            case 'nft':
                return adoptNft(await this.#nft.ruleset());
        }
    }

    /** What of other programs stands against a model, in words. */
    async warnings(model: Model): Promise<readonly string[]> {
        const evaluators = await this.#evaluators();
        return model.rules.flatMap((rule) =>
            idleBy(rule, model, evaluators).map((tool) => `rule ${rule.id}: ${tool} drops what it accepts`)
        );
    }

    /** What of other programs makes a rule idle, in words; for many rules at once. */
    async warningsOf(model: Model): Promise<(rule: Rule) => string[]> {
        const evaluators = await this.#evaluators();
        return (rule) =>
            idleBy(rule, model, evaluators).map((tool) => `${tool} drops what this rule accepts`);
    }

    /** An evaluator for each program that drops packets. */
    #evaluators(): Promise<ReadonlyMap<string, Evaluator>> {
        const now = Date.now();
        if (this.#warned === null || this.#warned.at + freshMs < now) {
            this.#warned = { at: now, model: this.#makeEvaluators() };
        }
        return this.#warned.model;
    }

    async #makeEvaluators(): Promise<ReadonlyMap<string, Evaluator>> {
        const evaluators = new Map<string, Evaluator>();
        const names = (await this.tools()).filter(({ active }) => active).map(({ tool }) => tool);
        const adoptable = [
            ...new Set(names.map((tool) => (tool === 'ufw' || tool === 'firewalld' ? tool : 'nft')))
        ] as const;
        for (const tool of adoptable) {
            // ufw and firewalld have their rules in chains of their own, which `nft` reads only in part.
            if (tool === 'nft' && adoptable.length > 1) {
                continue;
            }
            try {
                const model = adoptedModel(await this.adopt(tool));
                evaluators.set(
                    tool,
                    new Evaluator({ model, now: Date.now(), intervals: () => [], ban: () => null })
                );
            } catch (error) {
                if (!isFailure(error)) {
                    throw error;
                }
            }
        }
        return evaluators;
    }

    #ruleset(): Promise<readonly Listed[]> {
        const now = Date.now();
        if (this.#seen === null || this.#seen.at + freshMs < now) {
            const ruleset = this.#nft.ruleset().catch((error: unknown) => {
                if (isFailure(error)) {
                    return [];
                }
                throw error;
            });
            this.#seen = { at: now, ruleset };
        }
        return this.#seen.ruleset;
    }

    async #output(tool: string, args: readonly string[]): Promise<string> {
        const { code, stdout, stderr, timedOut } = await this.#ctx
            .exec(tool, args, { timeoutSeconds: 15, maxOutputBytes: 16 * 2 ** 20 })
            .catch((error: unknown) => {
                throw isFailure(error) && error.reason === 'TOOL_MISSING'
                    ? errors.toolMissing(tool, installs[tool] ?? '')
                    : error;
            });
        if (code !== 0) {
            throw fail.TOOL_FAILED({
                tool,
                message: timedOut ? 'it gave no answer' : stderr.trim().slice(0, 300)
            });
        }
        return stdout;
    }
}

/** The programs that drop what a rule accepts: one packet of each way of the rule is tried. */
function idleBy(rule: Rule, model: Model, evaluators: ReadonlyMap<string, Evaluator>): readonly string[] {
    if (rule.action !== 'accept' || rule.direction !== 'in' || !rule.enabled) {
        return [];
    }
    const packets = packetsOf(rule, model);
    return [...evaluators]
        .filter(([, evaluator]) => packets.some((packet) => evaluator.evaluate(packet).verdict !== 'accept'))
        .map(([tool]) => tool);
}

/** A packet for each protocol of a rule that it accepts. */
function packetsOf(rule: Rule, model: Model): readonly Packet[] {
    const { sources, services, interface: name, zone } = termsOf(rule, model);
    const term = sources?.find(({ intervals }) => intervals !== null);
    const [first] = term?.intervals ?? [];
    const family = first?.family ?? (rule.family === 'ipv6' ? 'ipv6' : 'ipv4');
    const source = first === undefined ? parsePrefix(anyVisitor[family]) : { ...first, to: first.from };
    return services.map(({ protocol, ports }) => ({
        direction: 'in',
        source,
        destination: parsePrefix(family === 'ipv4' ? '198.51.100.1' : '2001:db8::1'),
        protocol: protocol ?? 'tcp',
        port: ports?.[0]?.from ?? (protocol === null || protocol === 'tcp' || protocol === 'udp' ? 1 : null),
        interface: name ?? zone?.find(({ interfaces }) => interfaces !== null)?.interfaces?.[0] ?? null
    }));
}
