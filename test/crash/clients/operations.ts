/** The changes that a writer makes. Each knows the state that the panel must have after it, with or without an answer. */
import type { Random } from '../random.ts';
import { type Fields, type Kind, lasting, nameOf, withObjects, type World } from './world.ts';

export interface Operation {
    readonly name: string;
    readonly method: 'POST' | 'PUT' | 'DELETE';
    readonly path: string;
    readonly body?: Fields;
    /** Sent as Idempotency-Key. */
    readonly key?: string;
    /** The world after the change; `data` is the panel's answer, null when none came. */
    after(data: unknown): World;
}

/** What the operations of a writer need. */
export interface Material {
    /** The beginning of every name that the writer uses. */
    readonly prefix: string;
    readonly upstreams: readonly string[];
    /** PEM files that cover `*.<prefix>.crash.test`. */
    readonly certificates: readonly { readonly certificate: string; readonly key: string }[];
    /** A setting that only this writer changes, and how a number becomes its value. */
    readonly setting: { readonly key: string; readonly value: (n: number) => unknown };
    /** A number that is different each time. */
    readonly serial: () => number;
}

const mostHosts = 14;
const mostOthers = 4;

/** Chooses the next operation. */
export function nextOperation(world: World, material: Material, random: Random): Operation {
    const hosts = world.hosts.size;
    const choice = random.weighted({
        create: hosts > mostHosts ? 0 : 24,
        clone: hosts === 0 || hosts > mostHosts ? 0 : 4,
        upstream: hosts && 14,
        enabled: hosts && 9,
        maintenance: hosts && 4,
        behaviour: hosts && 2,
        rename: hosts && 4,
        tls: hosts && 1,
        notes: hosts && 6,
        remove: hosts === 0 ? 0 : hosts > mostHosts ? 30 : 9,
        batch: hosts > 2 ? 8 : 0,
        setting: 3,
        certificate: 2,
        user: 1,
        token: 3
    });
    switch (choice) {
        case 'create':
            return create(world, material, random);
        case 'clone':
            return clone(world, material, random);
        case 'remove':
            return remove(world, 'hosts', '/api/hosts', random.pick([...world.hosts.values()]));
        case 'batch':
            return batch(world, material, random);
        case 'setting':
            return setting(world, material, random);
        case 'certificate':
            return certificate(world, material, random);
        case 'user':
            return user(world, material, random);
        case 'token':
            return token(world, material, random);
        case 'upstream':
        case 'enabled':
        case 'maintenance':
        case 'behaviour':
        case 'rename':
        case 'tls':
        case 'notes':
            return update(world, material, random, choice);
    }
}

/** The answer when the change was acknowledged, otherwise the request. */
function outcome(kind: Kind, data: unknown, sent: Fields): readonly [string, Fields] {
    const object = data === null ? sent : lasting(kind, data as Fields);
    return [nameOf(kind, object), object];
}

function create(world: World, material: Material, random: Random): Operation {
    const n = material.serial();
    const domain = `h${n}.${material.prefix}.crash.test`;
    const redirects = random.chance(0.06);
    const body = {
        domain,
        notes: `made by ${n}`,
        enabled: random.chance(0.85),
        compression: random.chance(0.1),
        tags: [material.prefix],
        ...(random.chance(0.2) ? { aliases: [`alias${n}.${material.prefix}.crash.test`] } : {}),
        ...(redirects
            ? { type: 'redirect', redirect: { to: `https://elsewhere.test/${n}`, code: 307, keepPath: true } }
            : { upstream: random.pick(material.upstreams) })
    };
    return {
        name: 'create',
        method: 'POST',
        path: '/api/hosts',
        body,
        ...keyed(material, random, n),
        after: (data) => withObjects(world, 'hosts', [outcome('hosts', data, { ...body, version: 1 })])
    };
}

function clone(world: World, material: Material, random: Random): Operation {
    const n = material.serial();
    const source = random.pick([...world.hosts.values()]);
    const domain = `h${n}.${material.prefix}.crash.test`;
    const { id: _id, version: _version, createdAt: _createdAt, updatedAt: _updatedAt, ...copied } = source;
    return {
        name: 'clone',
        method: 'POST',
        path: `/api/hosts/${source['id']}/clone`,
        body: { domain },
        ...keyed(material, random, n),
        after: (data) =>
            withObjects(world, 'hosts', [
                outcome('hosts', data, { ...copied, domain, aliases: [], version: 1 })
            ])
    };
}

function update(
    world: World,
    material: Material,
    random: Random,
    what: 'upstream' | 'enabled' | 'maintenance' | 'behaviour' | 'rename' | 'tls' | 'notes'
): Operation {
    const n = material.serial();
    const before = random.pick([...world.hosts.values()]);
    const certificates = [...world.certificates.values()];
    const changes: Record<typeof what, () => Fields> = {
        upstream: () =>
            before['type'] === 'proxy'
                ? { upstream: random.pick(material.upstreams) }
                : { redirect: { to: `https://elsewhere.test/${n}`, code: 302, keepPath: true } },
        enabled: () => ({ enabled: before['enabled'] !== true }),
        maintenance: () => ({ maintenance: before['maintenance'] !== true }),
        behaviour: () => ({
            headers: {
                request: [],
                response: random.chance(0.5) ? [] : [{ op: 'set', name: 'X-Number', value: String(n % 5) }]
            },
            bodyLimitBytes: random.pick([null, 1000, 2000])
        }),
        rename: () => ({ domain: `h${n}.${material.prefix}.crash.test` }),
        tls: () => {
            if (before['ssl'] === true) {
                return { ssl: false, sslMode: 'auto', certificateId: null };
            }
            return certificates.length === 0 || random.chance(0.5)
                ? { ssl: true, sslMode: 'internal' }
                : { ssl: true, sslMode: 'certificate', certificateId: random.pick(certificates)['id'] };
        },
        notes: () => ({})
    };
    // The notes differ each time, so that every update raises the version.
    const body = { ...changes[what](), notes: `changed by ${n}` };
    return {
        name: `update ${what}`,
        method: 'PUT',
        path: `/api/hosts/${before['id']}`,
        body,
        after: (data) =>
            withObjects(world, 'hosts', [
                [nameOf('hosts', before), null],
                outcome('hosts', data, {
                    id: before['id'],
                    domain: before['domain'],
                    ...body,
                    version: Number(before['version']) + 1
                })
            ])
    };
}

function remove(world: World, kind: Kind, base: string, object: Fields): Operation {
    return {
        name: `remove ${kind}`,
        method: 'DELETE',
        path: `${base}/${object['id']}`,
        after: () => withObjects(world, kind, [[nameOf(kind, object), null]])
    };
}

function batch(world: World, material: Material, random: Random): Operation {
    const n = material.serial();
    const enabled = random.chance(0.5);
    const fitting = [...world.hosts.values()].filter((host) => host['enabled'] !== enabled);
    const action = fitting.length < 2 || random.chance(0.25) ? 'delete' : enabled ? 'enable' : 'disable';
    const candidates = action === 'delete' ? [...world.hosts.values()] : fitting;
    const chosen = candidates.slice(0, random.between(2, 5));
    return {
        name: `batch ${action}`,
        method: 'POST',
        path: '/api/hosts/batch',
        body: { ids: chosen.map((host) => host['id']), action },
        ...keyed(material, random, n),
        after: (data) =>
            withObjects(
                world,
                'hosts',
                chosen.map((host) => {
                    if (action === 'delete') {
                        return [nameOf('hosts', host), null];
                    }
                    const answered = (data as readonly Fields[] | null)?.find(({ id }) => id === host['id']);
                    return outcome('hosts', answered ?? null, {
                        id: host['id'],
                        domain: host['domain'],
                        enabled,
                        version: Number(host['version']) + 1
                    });
                })
            )
    };
}

function setting(world: World, material: Material, random: Random): Operation {
    const { key, value } = material.setting;
    const wanted = value(material.serial());
    const known = Number(world.settings.get(key)?.['version'] ?? 0);
    const sent = { key, value: wanted, version: known + 1 };
    const alone = random.chance(0.5);
    return {
        name: 'setting',
        method: 'PUT',
        path: alone ? `/api/settings/${key}` : '/api/settings',
        body: alone ? { value: wanted } : { [key]: wanted },
        after: (data) =>
            withObjects(world, 'settings', [
                outcome(
                    'settings',
                    alone
                        ? data
                        : ((data as readonly Fields[] | null)?.find((each) => each['key'] === key) ?? null),
                    sent
                )
            ])
    };
}

function certificate(world: World, material: Material, random: Random): Operation {
    const n = material.serial();
    const known = [...world.certificates.values()];
    if (known.length >= mostOthers || (known.length > 0 && random.chance(0.3))) {
        return remove(world, 'certificates', '/api/certificates', random.pick(known));
    }
    const name = `${material.prefix} ${n}`;
    return {
        name: 'certificate',
        method: 'POST',
        path: '/api/certificates',
        body: { name, ...random.pick(material.certificates) },
        ...keyed(material, random, n),
        after: (data) =>
            withObjects(world, 'certificates', [
                outcome('certificates', data, { name, domains: [`*.${material.prefix}.crash.test`] })
            ])
    };
}

function user(world: World, material: Material, random: Random): Operation {
    const n = material.serial();
    const known = [...world.users.values()];
    const one = known.length === 0 ? null : random.pick(known);
    if (one !== null && (known.length >= mostOthers || random.chance(0.3))) {
        return remove(world, 'users', '/api/users', one);
    }
    if (one !== null && random.chance(0.4)) {
        const body = { disabled: one['disabled'] !== true };
        return {
            name: 'update user',
            method: 'PUT',
            path: `/api/users/${one['id']}`,
            body,
            after: (data) =>
                withObjects(world, 'users', [
                    outcome('users', data, {
                        id: one['id'],
                        username: one['username'],
                        ...body,
                        version: Number(one['version']) + 1
                    })
                ])
        };
    }
    const body = {
        username: `${material.prefix}u${n}`,
        role: random.pick(['viewer', 'operator']),
        mustChangePassword: false
    };
    return {
        name: 'create user',
        method: 'POST',
        path: '/api/users',
        body: { ...body, password: `${material.prefix} leaves the harbour ${n}` },
        after: (data) => withObjects(world, 'users', [outcome('users', data, body)])
    };
}

function token(world: World, material: Material, random: Random): Operation {
    const known = [...world.tokens.values()];
    if (known.length >= mostOthers || (known.length > 0 && random.chance(0.4))) {
        return remove(world, 'tokens', '/api/auth/tokens', random.pick(known));
    }
    const body = { name: `${material.prefix} ${material.serial()}`, permissions: ['hosts:read'] };
    return {
        name: 'create token',
        method: 'POST',
        path: '/api/auth/tokens',
        body,
        after: (data) => withObjects(world, 'tokens', [outcome('tokens', data, body)])
    };
}

function keyed(material: Material, random: Random, n: number): { readonly key?: string } {
    return random.chance(0.7) ? { key: `${material.prefix}-${n}` } : {};
}
