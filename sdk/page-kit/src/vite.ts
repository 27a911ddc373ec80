/** What Vite needs to build the parts of this kit: xterm writes `<style>` elements, which the panel's content policy refuses. */

const written = /\.createElement\("style"\)/g;
const places = 3;

/** The part of a plugin of Vite that this one is. */
export interface VitePlugin {
    readonly name: string;
    readonly enforce: 'pre';
    transform(code: string, id: string): string | null;
}

/** Has xterm write its styles into adopted style sheets. @throws Error in the build when xterm writes them elsewhere than it did */
export function adoptTerminalStyles(): VitePlugin {
    return {
        name: 'portico-terminal-styles',
        enforce: 'pre',
        transform(code, id) {
            if (!/@xterm\/xterm\/lib\/xterm\.m?js/.test(id)) {
                return null;
            }
            const found = code.match(written)?.length ?? 0;
            if (found !== places) {
                throw new Error(
                    `xterm creates <style> in ${found} places, not in ${places}: look at each and change @portico/page-kit`
                );
            }
            return code.replace(written, '.createElement("portico-style")');
        }
    };
}
