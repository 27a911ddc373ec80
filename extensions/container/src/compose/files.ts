/** Configs and secrets of a service, as files that are written into its containers. */
import { posix } from 'node:path';

import type { SpecFile } from '../spec/spec.ts';
import { Fields, isTree } from './reader.ts';

/** Reads the keys `configs` and `secrets` of a service. */
export function readFiles(
    fields: Fields,
    {
        configs,
        secrets
    }: {
        readonly configs: ReadonlyMap<string, string>;
        readonly secrets: ReadonlyMap<string, string>;
    }
): readonly SpecFile[] {
    const kinds = [
        ['configs', configs, '/'],
        ['secrets', secrets, '/run/secrets/']
    ] as const;
    return kinds.flatMap(([key, contents, folder]) => {
        const value = fields.raw(key) ?? [];
        if (!Array.isArray(value)) {
            fields.problems.error(fields.at(key), 'This is a list');
            return [];
        }
        return value.flatMap((item, index): SpecFile[] => {
            const path = [...fields.at(key), index];
            const long = isTree(item) ? new Fields(item, path, fields.problems) : null;
            const source = long === null ? String(item) : (long.text('source') ?? '');
            const content = contents.get(source);
            const target = posix.resolve(folder, long?.text('target') ?? source);
            const mode = Number.parseInt(long?.text('mode') ?? '0444', 8);
            const file = {
                path: target,
                content: content ?? '',
                mode: Number.isInteger(mode) ? mode & 0o777 : 0o444,
                uid: Number(long?.text('uid') ?? 0),
                gid: Number(long?.text('gid') ?? 0)
            };
            long?.close();
            if (content === undefined) {
                fields.problems.error(path, `${source} is not declared under ${key}`);
            } else if (!Number.isInteger(file.uid) || !Number.isInteger(file.gid) || target === '/') {
                fields.problems.error(path, 'A file has a path, and numbers as uid and gid');
            }
            return [file];
        });
    });
}
