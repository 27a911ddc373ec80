/** Which pushes a project deploys. */
import { matchesGlob } from 'node:path';

import type { ProjectConfig } from '../projects/schema.ts';
import type { Push } from './delivery.ts';

/** Why a push does nothing. */
export type Ignored = 'event' | 'branch' | 'path' | 'duplicate' | 'disabled' | 'skip';

const skip = /\[(?:skip ci|ci skip|skip deploy|deploy skip)\]/i;

/** Why a project ignores a push; null when it is deployed. */
export function ignoredBecause({ source, triggers, enabled }: ProjectConfig, push: Push): Ignored | null {
    if (!enabled || !triggers.auto) {
        return 'disabled';
    }
    const patterns =
        push.kind === 'tag' ? triggers.tags : triggers.branches.length === 0 ? null : triggers.branches;
    const isWanted = patterns === null ? push.name === source.branch : matches(patterns, push.name);
    if (!isWanted) {
        return 'branch';
    }
    if (skip.test(push.message)) {
        return 'skip';
    }
    const { files } = push;
    return triggers.paths.length > 0 && files !== null && !files.some((file) => matches(triggers.paths, file))
        ? 'path'
        : null;
}

function matches(patterns: readonly string[], name: string): boolean {
    return patterns.some((pattern) => matchesGlob(name, pattern));
}
