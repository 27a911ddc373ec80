/** What the kind of a build needs beyond what every build does. */
import { errors, isFailure } from '@portico/sdk';

import { containerOf } from '../containers/images.ts';
import { DeploymentFailed } from '../errors.ts';
import type { ProjectConfig } from '../projects/schema.ts';
import type { Ctx } from '../settings.ts';

const packers = {
    nixpacks: 'curl -sSL https://nixpacks.com/install.sh | bash',
    railpack: 'curl -sSL https://railpack.com/install.sh | sh'
} as const;
const versionSeconds = 10;

/**
 * Checks that what a kind of build needs is there.
 *
 * @throws TOOL_MISSING 50302 with the command that brings it, ENGINE_DOWN 50350; DeploymentFailed BUILD_FAILED for a tool that is there and is not driven
 */
export async function checkTools(ctx: Ctx, { build }: Pick<ProjectConfig, 'build'>): Promise<void> {
    const { kind } = build;
    if (kind === 'dockerfile' || kind === 'compose') {
        await containerOf(ctx).engine({});
    } else if (kind === 'nixpacks' || kind === 'railpack') {
        await ctx
            .exec(kind, ['--version'], { cwd: '/', timeoutSeconds: versionSeconds })
            .catch((error: unknown) => {
                throw isFailure(error) && error.code === 50302
                    ? errors.toolMissing(kind, packers[kind])
                    : error;
            });
        throw new DeploymentFailed(
            'BUILD_FAILED',
            `${kind} is there, and is not driven yet: \`nixpacks build --out .\` writes a Dockerfile, which the kind dockerfile builds`
        );
    }
}
