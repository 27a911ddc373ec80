/** The units of systemd, as `systemctl` lists them, and what can be done with one. */
import { errors, type TaskView } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import { unitProtection } from '../processes/protected.ts';
import type { Ctx } from '../settings.ts';

/** What can be done with a unit. */
export const unitActions = ['start', 'stop', 'restart', 'reload'] as const;
/** The states of a unit. */
export const unitStates = [
    'active',
    'reloading',
    'inactive',
    'failed',
    'activating',
    'deactivating',
    'maintenance'
] as const;

/** One unit of systemd, with its state. */
export interface Unit {
    readonly name: string;
    readonly description: string;
    /** Whether its file could be read: `loaded`, `not-found`, `masked`, … */
    readonly load: string;
    readonly state: (typeof unitStates)[number];
    /** The state in the words of its type: `running`, `exited`, `listening`, … */
    readonly sub: string;
}

/** One action on one unit. */
export interface UnitOrder {
    readonly name: string;
    readonly action: (typeof unitActions)[number];
}

const types = ['service', 'socket', 'timer', 'path'] as const;
/** Names of the units that are listed; those of other types, such as mounts and slices, hold what others need. */
export const unitName = new RegExp(`^[A-Za-z0-9:_.\\\\@-]{1,240}\\.(?:${types.join('|')})$`);
/** Starting one of these ends the machine or all that runs on it. */
const endings =
    /^(?:systemd-(?:poweroff|reboot|halt|kexec|soft-reboot|exit|suspend|hibernate|hybrid-sleep|suspend-then-hibernate)|emergency|rescue)\.service$/;
const listSeconds = 10;
const actionSeconds = 300;
const outputBytes = 8 * 1024 * 1024;

/** Lists the units that systemd knows, sorted by name. @throws TOOL_MISSING 50302 where systemd is not the first process */
export async function listUnits(ctx: Ctx): Promise<Unit[]> {
    const text = await systemctl(ctx, [
        'list-units',
        '--all',
        '--full',
        `--type=${types.join(',')}`,
        '--output=json'
    ]);
    const rows = JSON.parse(text) as readonly Readonly<Record<string, string>>[];
    return rows
        .map((row): Unit => {
            const state = unitStates.find((each) => each === row['active']) ?? 'inactive';
            return {
                name: row['unit'] ?? '',
                description: row['description'] ?? '',
                load: row['load'] ?? '',
                state,
                sub: row['sub'] ?? ''
            };
        })
        .filter(({ name, load }) => unitName.test(name) && load !== 'not-found')
        .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Reads when units got their state, by their names; those of which systemd does not know it are left out. */
export async function readSince(ctx: Ctx, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const blocks = names.length === 0 ? [] : await show(ctx, ['Id', 'StateChangeTimestamp'], names);
    return new Map(
        blocks.flatMap((block): [string, string][] => {
            const seconds = Number(block.get('StateChangeTimestamp')?.replace('@', '') ?? '');
            const name = block.get('Id');
            return name === undefined || !(seconds > 0)
                ? []
                : [[name, new Date(seconds * 1000).toISOString()]];
        })
    );
}

/**
 * Starts the task that acts on a unit; its result is the unit's state afterwards.
 *
 * @throws NOT_FOUND 40400; UNIT_PROTECTED 40352; IN_USE 40901 while another action on it is under way; TOOL_MISSING 50302
 */
export async function actOnUnit(
    ctx: Ctx,
    machine: Machine,
    order: UnitOrder,
    task: { readonly actor: Parameters<Ctx['task']>[0]['actor'] }
): Promise<TaskView> {
    // A unit has further names; only its own one is compared.
    const [found] = await show(ctx, ['Id', 'LoadState'], [order.name]);
    const name = found?.get('Id') ?? order.name;
    if (found?.get('LoadState') === 'not-found' || !unitName.test(name)) {
        throw errors.notFound(`There is no unit ${order.name}`);
    }
    const reason =
        order.action === 'stop' || order.action === 'restart'
            ? await unitProtection(ctx, machine, name)
            : endings.test(name)
              ? 'it ends what runs on the machine'
              : null;
    if (reason !== null) {
        throw fail.UNIT_PROTECTED({ name, reason });
    }
    return ctx.task(
        {
            kind: 'unit',
            title: `${order.action} ${name}`,
            access: 'control',
            resource: name,
            key: `unit ${name}`,
            ...(task.actor === undefined ? {} : { actor: task.actor })
        },
        async ({ signal, log }) => {
            const { code, stderr } = await ctx.exec(
                'systemctl',
                ['--no-ask-password', order.action, '--', name],
                {
                    timeoutSeconds: actionSeconds,
                    signal
                }
            );
            if (stderr !== '') {
                log(stderr.trim().slice(0, 2_000));
            }
            const [after] = await show(ctx, ['ActiveState', 'SubState'], [name]);
            if (code !== 0) {
                throw fail.UNIT_ACTION_FAILED({
                    name,
                    action: order.action,
                    said: stderr.trim().slice(0, 300)
                });
            }
            return { name, state: after?.get('ActiveState') ?? '', sub: after?.get('SubState') ?? '' };
        }
    );
}

/** Asks for properties of units: a map for each unit. */
async function show(
    ctx: Ctx,
    properties: readonly string[],
    names: readonly string[]
): Promise<ReadonlyMap<string, string>[]> {
    const text = await systemctl(ctx, [
        'show',
        '--timestamp=unix',
        `--property=${properties.join(',')}`,
        '--',
        ...names
    ]);
    return text
        .split(/\n\n+/)
        .filter((block) => block.trim() !== '')
        .map(
            (block) =>
                new Map(
                    block.split('\n').flatMap((line): [string, string][] => {
                        const at = line.indexOf('=');
                        return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
                    })
                )
        );
}

async function systemctl(ctx: Ctx, args: readonly string[]): Promise<string> {
    const { code, stdout, stderr, timedOut } = await ctx.exec('systemctl', args, {
        timeoutSeconds: listSeconds,
        maxOutputBytes: outputBytes
    });
    if (code === 0) {
        return stdout;
    }
    if (/not been booted with systemd|Failed to connect to bus/.test(stderr)) {
        throw errors.toolMissing('systemd', 'boot this machine with systemd as its first process');
    }
    throw fail.SYSTEMD_SILENT({
        said: timedOut ? `no answer in ${listSeconds} seconds` : stderr.trim().slice(0, 300)
    });
}
