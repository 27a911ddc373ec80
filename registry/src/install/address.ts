/** Which npm registry is asked. */
import type { RegistryOptions } from '../ports.ts';

/** As a child process takes it. */
export async function addressOf({
    registryUrl,
    registryToken = null
}: Pick<RegistryOptions, 'registryUrl'> & { readonly registryToken?: string | null }): Promise<{
    readonly registryUrl: string;
    readonly registryToken: string | null;
}> {
    if (typeof registryUrl === 'string') {
        return { registryUrl, registryToken };
    }
    const { url, token } = await registryUrl();
    return { registryUrl: url, registryToken: token };
}
