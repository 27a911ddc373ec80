import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;
let ctx: Context;
const printUmask = ['-c', 'umask; echo "$@"', 'sh', 'a b', '$HOME'];

beforeEach(async () => {
    rig = await createPluginRig();
    await rig.run(
        definePlugin({
            setup(context) {
                ctx = context;
            }
        }),
        { capabilities: { exec: ['sh'], services: true } }
    );
});
afterEach(() => rig.close());

describe('the umask of a program', () => {
    it('is what was asked for, beside limits, and leaves the arguments as they are', async () => {
        const { stdout } = await ctx.exec('sh', printUmask, { umask: 0o027, limits: { openFiles: 64 } });
        expect(stdout).to.equal('0027\na b $HOME\n');
    });

    it('is what was asked for in a service', async () => {
        await ctx.services.put('shown', { file: 'sh', args: printUmask, umask: 0o007, restart: 'once' });
        const lines: string[] = [];
        await until(async () => {
            lines.length = 0;
            for await (const line of ctx.services.output('shown', { tail: 10 })) {
                lines.push(line.text);
            }
            return lines.length === 2;
        });
        expect(lines).to.equal(['0007', 'a b $HOME']);
        await ctx.services.remove('shown');
    });

    it('is refused when it is no permission bits', async () => {
        // wrong on purpose
        for (const umask of [-1, 0o1000, 1.5, '027' as never]) {
            await expect(ctx.exec('sh', printUmask, { umask })).to.reject(TypeError, /umask/);
        }
    });
});
