/** Styles for documents whose policy refuses inline ones: style sheets that are adopted, not written into elements. */

/** Adopts the rules in the document for good. */
export function adoptStyle(css: string): void {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

/** An element that stands for `<style>`: its text becomes an adopted style sheet, as long as it is in the document. */
class AdoptedStyle extends HTMLElement {
    readonly #sheet = new CSSStyleSheet();

    override get textContent(): string {
        return '';
    }

    override set textContent(css: string) {
        this.#sheet.replaceSync(css);
    }

    connectedCallback(): void {
        document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
    }

    disconnectedCallback(): void {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== this.#sheet);
    }
}

/** Makes the element known under the name that the build writes in the place of `style`. */
export function defineAdoptedStyle(): void {
    if (customElements.get('portico-style') === undefined) {
        customElements.define('portico-style', AdoptedStyle);
    }
}
