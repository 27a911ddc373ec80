/** Plugins in words, for people at the console. */
import { plain } from '../../command/output.ts';
import type { ShownPlugin } from './plugin-admin.ts';

const stages: Readonly<Record<string, string>> = {
    discovered: 'its package cannot be used',
    resolved: 'it cannot start here',
    loaded: 'its code was not loaded',
    mounted: 'it could not be set up',
    running: 'it did not run'
};

/** Why it failed, such as `its code was not loaded (IMPORT_FAILED): …`; null when it has not. */
export function failureOf({ failure }: Pick<ShownPlugin, 'failure'>): string | null {
    return failure === null
        ? null
        : plain(`${stages[failure.stage] ?? failure.stage} (${failure.code}): ${failure.message}`).replaceAll(
              /\s+/g,
              ' '
          );
}

/** What became of it, after its name. */
export function describe(
    { name, version, state, enabled, failure, quarantinedAt }: ShownPlugin,
    isRunning: boolean
): string {
    const why = failureOf({ failure });
    switch (state) {
        case 'running':
            return `runs, in version ${version}`;
        case 'disabled':
            return 'is disabled';
        case 'failed':
            return `has failed: ${why ?? 'nobody knows why'}`;
        case 'quarantined':
            return `is in quarantine${quarantinedAt === null ? '' : ` since ${quarantinedAt}`}: \`portico plugin enable ${name}\` tries it again${why === null ? '' : `. It failed: ${why}`}`;
        default:
            return isRunning && state !== 'resolved'
                ? `is on its way (${state})`
                : enabled
                  ? 'is enabled, and starts with the next start of the panel'
                  : 'is not enabled';
    }
}

/** Whether it does not do what somebody has just asked for. */
export const hasFailed = ({ state }: ShownPlugin): boolean => state === 'failed' || state === 'quarantined';

/** Rows in columns, the last one as wide as it is. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
    const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
    return rows.map((row) =>
        row
            .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
            .join('  ')
            .trimEnd()
    );
}
