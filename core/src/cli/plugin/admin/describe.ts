/** Descriptions of plugins for the console. */
import { toPlainText } from '../../command/output.ts';
import type { ShownPlugin } from './plugin-admin.ts';

const stages: Readonly<Record<string, string>> = {
    discovered: 'its package cannot be used',
    resolved: 'it cannot start here',
    loaded: 'its code was not loaded',
    mounted: 'it could not be set up',
    running: 'it did not run'
};

/** Why a plugin failed, such as `its code was not loaded (IMPORT_FAILED): …`; null when it has not. */
export function describeFailure({ failure }: Pick<ShownPlugin, 'failure'>): string | null {
    return failure === null
        ? null
        : toPlainText(
              `${stages[failure.stage] ?? failure.stage} (${failure.code}): ${failure.message}`
          ).replaceAll(/\s+/g, ' ');
}

/** The state of a plugin, as the rest of a sentence that begins with its name. */
export function describeState(
    { name, version, state, enabled, failure, quarantinedAt }: ShownPlugin,
    isRunning: boolean
): string {
    const why = describeFailure({ failure });
    switch (state) {
        case 'running':
            return `runs, in version ${version}`;
        case 'disabled':
            return 'is disabled';
        case 'failed':
            return `has failed: ${why ?? 'the reason is unknown'}`;
        case 'quarantined':
            return `is in quarantine${quarantinedAt === null ? '' : ` since ${quarantinedAt}`}: \`portico plugin enable ${name}\` tries it again${why === null ? '' : `. It failed: ${why}`}`;
        default:
            return isRunning && state !== 'resolved'
                ? `is starting or stopping (${state})`
                : enabled
                  ? 'is enabled, and starts with the next start of the panel'
                  : 'is not enabled';
    }
}

/** Whether a plugin that was enabled does not run. */
export const hasFailed = ({ state }: ShownPlugin): boolean => state === 'failed' || state === 'quarantined';

/** Aligns rows in columns; the last column keeps its own width. */
export function alignColumns(rows: readonly (readonly string[])[]): readonly string[] {
    const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
    return rows.map((row) =>
        row
            .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
            .join('  ')
            .trimEnd()
    );
}
