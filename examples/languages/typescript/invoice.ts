// The invoice of an order, as Daybook stores a document's content: amounts are cents.
export function invoice(number: string, net: number) {
  const tax = Math.floor((net * 19) / 100);
  return {
    number,
    country: "DE",
    lines: [{ kind: "item", description: "Goods", net, rate: 19, category: "VAT" }],
    taxes: [{ category: "VAT", rate: 19, base: net, amount: tax }],
    total: net + tax,
    payable: net + tax,
  };
}
