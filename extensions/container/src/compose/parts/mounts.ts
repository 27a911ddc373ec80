/** Volumes, binds and temporary file systems of a compose file. */
import { posix } from 'node:path';

import type { Mount } from '../../spec/spec.ts';
import type { Problems } from '../problems.ts';
import { bytesOf, Fields, isTree, type Path, textOf } from '../reader.ts';

/** What a mount may refer to. */
export interface MountScope {
    /** Where relative binds lie. */
    readonly folder: string;
    /** Volumes of the file, by their key. */
    readonly volumes: ReadonlyMap<string, DeclaredVolume>;
}

/** A volume that a compose file declares. */
export interface DeclaredVolume {
    readonly key: string;
    /** As the engine knows it. */
    readonly name: string;
    readonly external: boolean;
    readonly driver: string;
    readonly options: Readonly<Record<string, string>>;
    readonly labels: Readonly<Record<string, string>>;
}

const propagations = ['', 'private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave'] as const;

/** Reads the keys `volumes` and `tmpfs` of a service. */
export function readMounts(service: Fields, scope: MountScope): readonly Mount[] {
    const value = service.raw('volumes') ?? [];
    const mounts: Mount[] = [];
    if (!Array.isArray(value)) {
        service.problems.error(service.at('volumes'), 'This is a list');
    } else {
        for (const [index, item] of value.entries()) {
            const path = [...service.at('volumes'), index];
            const mount = isTree(item)
                ? readLong(new Fields(item, path, service.problems), scope)
                : readShort(textOf(item, path, service.problems) ?? '', scope, path, service.problems);
            mounts.push(...(mount === null ? [] : [mount]));
        }
    }
    for (const entry of service.texts('tmpfs', true)) {
        const [target = '', options = ''] = entry.split(':');
        const [, size] = /(?:^|,)size=(\w+)(?:,|$)/.exec(options) ?? [];
        mounts.push({
            ...base('tmpfs', target),
            tmpfsBytes: bytesOf(size ?? null, service.at('tmpfs'), service.problems)
        });
        if (options.replace(/(^|,)(size=\w+|mode=\d+|rw|noexec|nosuid|nodev)/g, '') !== '') {
            service.problems.lacks([...service.at('tmpfs'), options]);
        }
    }
    for (const [index, { target }] of mounts.entries()) {
        if (!posix.isAbsolute(target) || posix.normalize(target) === '/') {
            service.problems.error(service.at('volumes'), `${target} is no absolute path in the container`);
        }
        if (mounts.findIndex((each) => posix.normalize(each.target) === posix.normalize(target)) !== index) {
            service.problems.error(service.at('volumes'), `${target} is mounted twice`);
        }
    }
    return mounts;
}

const base = (type: Mount['type'], target: string): Mount => ({
    type,
    source: null,
    written: null,
    target,
    readOnly: false,
    propagation: '',
    tmpfsBytes: null,
    volume: null
});

function readLong(fields: Fields, scope: MountScope): Mount | null {
    const type = fields.word('type', ['volume', 'bind', 'tmpfs']);
    const source = fields.text('source');
    const target = fields.text('target') ?? '';
    const readOnly = fields.flag('read_only');
    const bind = fields.child('bind');
    const propagation = bind?.word('propagation', propagations) ?? '';
    bind?.flag('create_host_path');
    bind?.close();
    fields.child('volume')?.close();
    const temporary = fields.child('tmpfs');
    const tmpfsBytes = bytesOf(temporary?.text('size') ?? null, fields.path, fields.problems);
    temporary?.close();
    fields.close();
    const mount = { ...base(type ?? 'volume', target), readOnly };
    switch (type) {
        case 'tmpfs':
            return { ...mount, tmpfsBytes };
        case 'bind':
            return source === null
                ? missing(fields)
                : { ...bindOf(mount, source, scope, fields), propagation };
        case 'volume':
            return named(mount, source, scope, fields.path, fields.problems);
        default:
            return missing(fields);
    }
}

function missing(fields: Fields): null {
    fields.problems.error(fields.path, 'A mount has a type, and a bind has a source');
    return null;
}

/** `[source:]target[:options]`. */
function readShort(text: string, scope: MountScope, path: Path, problems: Problems): Mount | null {
    const parts = text.split(':');
    if (parts.length > 3 || text === '') {
        problems.error(path, 'A volume is [source:]target[:options]');
        return null;
    }
    const [first = '', target = first, options = ''] = parts;
    const words = options === '' ? [] : options.split(',');
    let [readOnly, propagation] = [false, ''];
    for (const word of words) {
        if (word === 'ro' || word === 'rw') {
            readOnly = word === 'ro';
        } else if ((propagations as readonly string[]).includes(word)) {
            propagation = word;
        } else if (!['cached', 'delegated', 'consistent'].includes(word)) {
            problems.lacks([...path, word]);
        }
    }
    const source = parts.length === 1 ? null : first;
    const mount = { ...base('volume', target), readOnly };
    if (source !== null && /^[./~\\]/.test(source)) {
        return { ...bindOf({ ...mount, type: 'bind' }, source, scope, { path, problems }), propagation };
    }
    return { ...named(mount, source, scope, path, problems), propagation };
}

/** Relative sources lie in the stack's own folder; the policy says whether the result may be used. */
function bindOf(
    mount: Mount,
    written: string,
    { folder }: MountScope,
    { path, problems }: { readonly path: Path; readonly problems: Problems }
): Mount {
    if (/^~|\\/.test(written)) {
        problems.error(path, 'A bind is an absolute path, or one that begins with ./');
    }
    return { ...mount, source: posix.resolve(folder, written), written };
}

function named(
    mount: Mount,
    source: string | null,
    scope: MountScope,
    path: Path,
    problems: Problems
): Mount {
    if (source === null) {
        return { ...mount, volume: { driver: 'local', options: {}, external: false } };
    }
    const declared = scope.volumes.get(source);
    if (declared === undefined) {
        problems.error(path, `The volume ${source} is not declared under volumes`);
        return mount;
    }
    const { name, driver, options, external } = declared;
    return { ...mount, source: name, written: name, volume: { driver, options, external } };
}
