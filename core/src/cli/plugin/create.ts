/** `portico plugin create`: writes a new plugin from a template. */
import type { Command } from '../command/command.ts';
import { usageError } from '../command/command-error.ts';

/** The command `plugin create`. */
export const pluginCreate: Command = {
    name: 'plugin create',
    positionals: ['<name>'],
    summary: 'Create a plugin: a package in TypeScript with a route, a setting and a test',
    details: [
        'The name is that of the plugin, as in /api/plugins/<name>. Nothing is downloaded: `npm install` in the new folder does that.',
        'The SDK comes from the registry, as the version of this panel; where that SDK was never published, as in a checkout of the repository, npm links to the packages of the checkout.'
    ],
    options: {
        dir: {
            type: 'string',
            value: 'folder',
            description: 'The new folder; else ./<name>. It must not exist yet'
        },
        page: {
            type: 'boolean',
            description: 'With a page of its own beside the one that the panel makes'
        },
        package: { type: 'string', value: 'name', description: 'The npm name; else portico-plugin-<name>' },
        sdk: {
            type: 'string',
            value: 'spec',
            description:
                'Where npm takes @portico/sdk from instead: a version, or a tarball such as file:../sdk.tgz'
        }
    },
    async run({ flag, output, positionals, text }) {
        const [name = ''] = positionals;
        const { createPlugin } = await import('./develop/template.ts');
        const packageName = text('package') ?? `portico-plugin-${name}`;
        if (!/^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(packageName)) {
            throw usageError(`--package: ${JSON.stringify(packageName)} is not the name of an npm package`);
        }
        const folder = await createPlugin({
            name,
            package: packageName,
            folder: text('dir') ?? name,
            sdk: text('sdk') ?? null,
            hasPage: flag('page')
        });
        output.say(`Next:\n  cd ${folder}\n  npm install\n  npm test\n  portico plugin dev`);
        output.result({ name, folder }, folder);
        return 0;
    }
};
