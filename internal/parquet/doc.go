// Package parquet writes tables in the format of Apache Parquet, as far as exports need it: flat
// columns that may be null, plain values, pages compressed by zstd. A library that can do all of the
// format would make the binary 6 MB larger.
//
// https://parquet.apache.org/docs/file-format/
package parquet
