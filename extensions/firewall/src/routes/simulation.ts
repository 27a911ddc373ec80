/** Routes that tell what rules do, without doing it: validation, simulation, and the ruleset itself. */
import { errors, isFailure, joi } from '@portico/sdk';

import { type Interval, readPeer } from '../address/interval.ts';
import type { Direction, Model } from '../draft/model.ts';
import { interfacesTo, isOwn, type Machine } from '../machine.ts';
import { wholeTable } from '../ruleset/commands.ts';
import { rulesetText } from '../ruleset/text.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { lockOutOf } from './changes/trial.ts';

const which = joi.choice({ draft: 'The draft', applied: 'What is applied' });

/** Registers `/validate`, `/simulate` and `/ruleset`. */
export function registerSimulationRoutes(ctx: Ctx, services: Services): void {
    registerValidate(ctx, services);
    registerSimulate(ctx, services);
    registerRuleset(ctx, services);
}

function registerValidate(ctx: Ctx, services: Services): void {
    const { draft, firewall, foreign } = services;
    ctx.route({
        method: 'POST',
        path: '/validate',
        id: 'validate',
        access: 'write',
        effect: 'read',
        summary: 'Ask nft whether it would take the draft',
        answers: 'done',
        ui: { title: 'Check', role: 'action' },
        returns: joi.object({
            ok: joi.boolean().required().label('Accepted'),
            message: joi
                .string()
                .allow(null)
                .required()
                .label('Message')
                .description('What nft says against it'),
            lockOut: joi.array().items(joi.any()).required().label('Your connections that would be refused'),
            warnings: joi.array().items(joi.string()).required().label('Warnings')
        }),
        async handler(request) {
            const model = await draft.model();
            const lockOut = await lockOutOf(ctx, services, model, request);
            const message = await messageOf(firewall.check(model));
            return {
                ok: message === null,
                message,
                lockOut: [...lockOut],
                warnings: [...(await foreign.warnings(model))]
            };
        }
    });
}

function registerSimulate(ctx: Ctx, services: Services): void {
    const { machine, evaluator } = services;
    ctx.route({
        method: 'POST',
        path: '/simulate',
        id: 'simulate',
        access: 'read',
        effect: 'read',
        summary: 'Say what becomes of a new connection',
        answers: 'done',
        ui: { title: 'Simulate', role: 'action' },
        returns: joi.object({
            verdict: joi
                .choice({ accept: 'Accepted', drop: 'Dropped', reject: 'Rejected' })
                .required()
                .label('Verdict')
                .meta({ ui: { tones: { accept: 'good', drop: 'bad', reject: 'warning' } } }),
            ruleId: joi.number().integer().allow(null).required().label('Rule'),
            path: joi.array().items(joi.string()).required().label('What it met')
        }),
        validate: {
            payload: joi.object({
                source: joi.string().max(64).required().label('From').description('An address'),
                destination: joi
                    .string()
                    .max(64)
                    .label('To')
                    .description('An address; default: this machine'),
                protocol: joi
                    .choice({ tcp: 'TCP', udp: 'UDP', icmp: 'ICMP', icmpv6: 'ICMPv6' })
                    .required()
                    .label('Protocol'),
                port: joi.number().integer().min(1).max(65_535).label('Port'),
                interface: joi
                    .string()
                    .max(15)
                    .label('Interface')
                    .description('Default: that of the network of the address'),
                which: which.default('draft').label('Of')
            })
        },
        async handler({ payload }) {
            const model = await modelOf(services, payload.which);
            const source = readAddress('source', payload.source);
            const destination =
                payload.destination === undefined ? null : readAddress('destination', payload.destination);
            if (destination !== null && destination.family !== source.family) {
                throw errors.invalid([
                    { path: 'destination', message: 'Both addresses are of one version of IP' }
                ]);
            }
            const { direction, name } = await directionOf(
                services,
                source,
                destination,
                payload.port ?? null
            );
            const { verdict, ruleId, path } = (await evaluator(model)).evaluate({
                direction,
                source,
                destination: destination ?? ownAddressFor(machine, source),
                protocol: payload.protocol,
                port: payload.port ?? null,
                interface: payload.interface ?? name
            });
            return { verdict, ruleId, path: [...path] };
        }
    });
}

function registerRuleset(ctx: Ctx, services: Services): void {
    const { firewall, bans } = services;
    ctx.route({
        method: 'GET',
        path: '/ruleset',
        id: 'ruleset',
        access: 'read',
        summary: 'The whole ruleset, with the base rules',
        ui: { title: 'Ruleset', role: 'card', order: 9 },
        returns: joi.object({
            document: joi.any().label('Document').description('As `nft -j -f` takes it'),
            text: joi.string().label('Text').description('As `nft -f` takes it')
        }),
        validate: {
            query: joi.object({
                which: which.default('applied').label('Of'),
                format: joi
                    .choice({ json: 'JSON of libnftables', text: 'Text of nft' })
                    .default('json')
                    .label('Format')
            })
        },
        async handler({ query }) {
            const rulesets = [
                await firewall.compile(await modelOf(services, query.which)),
                await bans.ruleset()
            ];
            return query.format === 'text'
                ? { text: rulesetText(rulesets) }
                : { document: wholeTable(rulesets) };
        }
    });
}

/** The draft, or what is applied. @throws NOT_FOUND 40400 when nothing is applied */
export async function modelOf({ draft, store }: Services, name: 'draft' | 'applied'): Promise<Model> {
    if (name === 'draft') {
        return draft.model();
    }
    const { applied, trial } = await store.read();
    const model = trial === null ? applied?.model : trial.model;
    if (model == null) {
        throw errors.notFound('No rules are applied');
    }
    return model;
}

/** Why a check failed; null when it did not. What is wrong with the machine, not with the draft, is thrown. */
async function messageOf(check: Promise<void>): Promise<string | null> {
    try {
        await check;
        return null;
    } catch (error) {
        if (isFailure(error) && error.reason === 'NFT_REJECTED') {
            return String(error.data?.['message']);
        }
        throw error;
    }
}

/** The chain that sees a packet, and the interface that it passes where that is known. */
async function directionOf(
    { machine, foreign }: Services,
    source: Interval,
    destination: Interval | null,
    port: number | null
): Promise<{ readonly direction: Direction; readonly name: string | null }> {
    const interfaceOf = (address: Interval): string | null => {
        const names = interfacesTo(machine, address);
        return names.length === 1 ? (names[0] ?? null) : null;
    };
    const isToOwn = destination === null || isOwn(machine, destination);
    if (isOwn(machine, source)) {
        return { direction: 'out', name: isToOwn ? 'lo' : interfaceOf(destination) };
    }
    if (!isToOwn) {
        return { direction: 'forward', name: interfaceOf(source) };
    }
    const isPublished = (await foreign.published()).some((each) => each.port === port);
    return { direction: isPublished ? 'container' : 'in', name: interfaceOf(source) };
}

/** An address of the machine in the family of a source. */
function ownAddressFor(machine: Machine, source: Interval): Interval {
    const own = machine
        .addresses()
        .filter(({ address, interface: name }) => address.family === source.family && name !== 'lo');
    const near = own.find(({ network }) => network.from <= source.from && source.from <= network.to);
    return (near ?? own[0])?.address ?? source;
}

/** @throws VALIDATION_FAILED 40001 */
function readAddress(path: string, text: string): Interval {
    const address = readPeer(text);
    if (address === null || text.includes('%')) {
        throw errors.invalid([{ path, message: `${path} is an IP address` }]);
    }
    return address;
}
