"""Commands of ranks: conversion, metrics, IR measures, conformance."""
